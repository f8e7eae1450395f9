//! Conditions in the status of NodePools, NodeClaims, EC2NodeClasses, Nodes and CapacityBuffers: what was seen of them
//! last, and what is told of it when one changes, or when an object goes.
//!
//! A change is counted once, by whoever leads; a replica that stands by remembers and tells nothing. Bounded by the
//! objects that there are. Answers to `status/controller.go` of awslabs/operatorpkg.

mod entries;
mod seen;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use apis::ObjectKey;
use jiff::Timestamp;
use locks::lock;
use state::Snapshot;
use state::cluster::Change;

pub(crate) use entries::StatusEntry;
use seen::StatusNow;
pub(crate) use seen::{StatusKind, StatusSeen};

/// Shared by the watches, which tell of objects, and by the gauges.
#[derive(Debug, Default)]
pub(crate) struct StatusConditions(Mutex<BTreeMap<(StatusKind, ObjectKey), StatusSeen>>);

impl StatusConditions {
    /// Takes in a change that the snapshot has already.
    pub(crate) fn observe(
        &self,
        change: &Change,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Vec<(StatusSeen, StatusEntry)> {
        let Some(StatusNow { kind, key, seen }) = StatusNow::after(change, snapshot) else {
            return Vec::new();
        };
        let mut all = self.lock();
        let known = all.remove(&(kind, key.clone()));
        let is_same = match (&known, &seen) {
            (Some(known), Some(seen)) => known.uid == seen.uid,
            _ => false,
        };
        // Another object of the name: the one before is gone.
        let (before, gone) = if is_same {
            (known, None)
        } else {
            (None, known)
        };
        let mut tidings = gone.map(|it| entries::of_end(&it, now)).unwrap_or_default();
        if let Some(seen) = seen {
            tidings.extend(entries::of_change(&seen, before.as_ref()));
            all.insert((kind, key), seen.without_messages());
        }
        tidings
    }

    /// Tells of each object.
    pub(crate) fn each(&self, kind: StatusKind, tell: impl FnMut(&StatusSeen)) {
        let all = self.lock();
        all.values().filter(|it| it.kind == kind).for_each(tell);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(StatusKind, ObjectKey), StatusSeen>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests;
