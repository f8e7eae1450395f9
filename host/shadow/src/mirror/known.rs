//! Which objects are mirrored, and whether a version of one is another than the last.

use std::collections::{BTreeMap, BTreeSet};

use apis::ObjectKey;
use serde_json::{Map, Value};

use crate::digest::digest;
use crate::kinds::ReadKind;
use crate::object::key_of;

/// What a version of an object is beside the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Novelty {
    New,
    Changed(LostKeys),
    Same,
}

/// Keys of labels and annotations that the last version had and this one has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LostKeys([BTreeSet<Box<str>>; 2]);

impl LostKeys {
    /// Says of an object that these are gone: null, as in a merge patch. What stands in for them stays.
    pub(super) fn mark(self, object: &mut Value) {
        for (part, keys) in PARTS.into_iter().zip(self.0) {
            for key in keys {
                let fields = &mut object["metadata"][part];
                if fields.get(&*key).is_none() {
                    fields[&*key] = Value::Null;
                }
            }
        }
    }
}

/// Parts of the metadata that are mirrored.
const PARTS: [&str; 2] = ["labels", "annotations"];

/// What is mirrored, as it was told last.
#[derive(Debug, Default)]
pub(super) struct Known {
    versions: BTreeMap<ReadKind, BTreeMap<ObjectKey, KnownVersion>>,
}

/// The version of an object that was told last. The shadow's controllers write labels and annotations beside those of
/// the cluster, so that only the keys tell what the cluster has taken back.
#[derive(Debug)]
struct KnownVersion {
    digest: u64,
    /// Of labels and of annotations.
    keys: [BTreeSet<Box<str>>; 2],
}

impl KnownVersion {
    fn of(kind: ReadKind, object: &Value) -> Self {
        let keys = |part: &str| {
            let fields = object["metadata"][part].as_object();
            let keys = fields.into_iter().flat_map(Map::keys);
            keys.map(|it| it.as_str().into()).collect()
        };
        Self {
            digest: version(kind, object),
            keys: PARTS.map(keys),
        }
    }

    /// Keys that it has and a later version has not.
    fn lost_in(&self, later: &Self) -> LostKeys {
        let [labels, annotations] = &self.keys;
        let [later_labels, later_annotations] = &later.keys;
        let lost = |before: &BTreeSet<Box<str>>, now: &BTreeSet<Box<str>>| {
            before.difference(now).cloned().collect()
        };
        LostKeys([
            lost(labels, later_labels),
            lost(annotations, later_annotations),
        ])
    }
}

impl Known {
    pub(super) fn note(&mut self, kind: ReadKind, object: &Value) -> Novelty {
        let table = self.versions.entry(kind).or_default();
        let now = KnownVersion::of(kind, object);
        let key = key_of(object);
        let novelty = match table.get(&key) {
            None => Novelty::New,
            Some(before) if before.digest == now.digest => Novelty::Same,
            Some(before) => Novelty::Changed(before.lost_in(&now)),
        };
        table.insert(key, now);
        novelty
    }

    /// False where it was not known.
    pub(super) fn forget(&mut self, kind: ReadKind, key: &ObjectKey) -> bool {
        let table = self.versions.get_mut(&kind);
        table.is_some_and(|table| table.remove(key).is_some())
    }
}

/// Status counts of nodes alone: that of others is the shadow's own.
fn version(kind: ReadKind, object: &Value) -> u64 {
    let Some(fields) = object.as_object() else {
        return 0;
    };
    let metadata = &object["metadata"];
    let mut parts = vec![&metadata["labels"], &metadata["annotations"]];
    let counts = |field: &str| match field {
        "metadata" => false,
        "status" => kind == ReadKind::Nodes,
        _ => true,
    };
    let others = fields.iter().filter(|(field, _)| counts(field));
    parts.extend(others.map(|(_, value)| value));
    digest(&parts)
}
