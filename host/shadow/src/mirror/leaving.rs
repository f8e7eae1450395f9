//! What is gone in the cluster and has something left to do in the shadow.

use std::collections::BTreeSet;

use apis::ObjectKey;

use super::write::MirrorWrite;
use crate::kinds::ReadKind;

/// Objects of a kind that are to go once they have run to their end.
#[derive(Debug, Default)]
pub(super) struct LeavingObjects(BTreeSet<ObjectKey>);

impl LeavingObjects {
    pub(super) fn add(&mut self, key: ObjectKey) {
        self.0.insert(key);
    }

    /// Those that have nothing left to do go.
    pub(super) fn done(
        &mut self,
        kind: ReadKind,
        is_done: impl Fn(&ObjectKey) -> bool,
    ) -> Vec<MirrorWrite> {
        let done = self.0.extract_if(.., |key| is_done(key));
        done.map(|key| MirrorWrite::Delete { kind, key }).collect()
    }
}
