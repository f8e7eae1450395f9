//! Pods whose controller the shadow does not have, mirrored one by one.

use std::collections::BTreeSet;

use apis::ObjectKey;

use super::write::MirrorWrite;
use crate::gathered::ObjectChange;
use crate::kinds::ReadKind;
use crate::object::{is_deleting, key_of};
use crate::pods::{is_finished, is_of_its_node, waiting};

/// The pods that are mirrored so.
#[derive(Debug, Default)]
pub(super) struct UnownedPods {
    there: BTreeSet<ObjectKey>,
    /// Gone in the cluster, and to go in the shadow once they have run for as long.
    leaving: BTreeSet<ObjectKey>,
}

impl UnownedPods {
    pub(super) fn add(&mut self, key: ObjectKey) {
        self.there.insert(key);
    }

    /// What follows for the shadow; `is_open`: the shadow has yet to run it to its end.
    pub(super) fn change(
        &mut self,
        change: ObjectChange,
        is_open: bool,
        nodes: &BTreeSet<String>,
    ) -> Option<MirrorWrite> {
        let ObjectChange {
            kind,
            object: pod,
            is_gone,
        } = change;
        let key = key_of(&pod);
        if is_gone || is_deleting(&pod) {
            if !self.there.remove(&key) {
                return None;
            }
            if is_open {
                self.leaving.insert(key);
                return None;
            }
            return Some(MirrorWrite::Delete { kind, key });
        }
        if self.there.contains(&key) || is_finished(&pod) {
            return None;
        }
        if is_of_its_node(&pod) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            if !nodes.contains(node) {
                return None;
            }
            self.there.insert(key);
            return Some(MirrorWrite::Restore { kind, object: pod });
        }
        self.there.insert(key);
        let object = waiting(pod);
        Some(MirrorWrite::Restore { kind, object })
    }

    /// Those that have nothing left to do.
    pub(super) fn done(&mut self, is_done: impl Fn(&ObjectKey) -> bool) -> Vec<MirrorWrite> {
        let kind = ReadKind::Pods;
        let done = self.leaving.extract_if(.., |key| is_done(key));
        done.map(|key| MirrorWrite::Delete { kind, key }).collect()
    }
}
