//! Which objects are mirrored, and whether a version of one is another than the last.

use std::collections::BTreeMap;

use apis::ObjectKey;
use serde_json::Value;

use crate::digest::digest;
use crate::kinds::ReadKind;
use crate::object::key_of;

/// What a version of an object is beside the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Novelty {
    New,
    Changed,
    Same,
}

/// Digests of what is mirrored.
#[derive(Debug, Default)]
pub(super) struct Known {
    digests: BTreeMap<ReadKind, BTreeMap<ObjectKey, u64>>,
}

impl Known {
    pub(super) fn note(&mut self, kind: ReadKind, object: &Value) -> Novelty {
        let table = self.digests.entry(kind).or_default();
        let now = version(kind, object);
        match table.insert(key_of(object), now) {
            None => Novelty::New,
            Some(before) if before == now => Novelty::Same,
            Some(_) => Novelty::Changed,
        }
    }

    /// False where it was not known.
    pub(super) fn forget(&mut self, kind: ReadKind, key: &ObjectKey) -> bool {
        let table = self.digests.get_mut(&kind);
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
