//! Since when each pending pod waits for its first decision.
//!
//! Bounded by the pods that exist; nothing is decided here. Answers to the pod scheduling maps of Karpenter's
//! `pkg/controllers/state/cluster.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;
use locks::lock;
use scheduling::pod::PodKey;

/// By the keys of pods, when each was first seen.
#[derive(Debug, Default)]
pub(crate) struct UndecidedPods(Mutex<BTreeMap<PodKey, Timestamp>>);

impl UndecidedPods {
    /// A pod waits for a decision.
    pub(crate) fn saw(&self, key: &PodKey, now: Timestamp) {
        self.lock().entry(key.clone()).or_insert(now);
    }

    /// A pod got its first decision, or is gone; answers since when it waited.
    pub(crate) fn decided(&self, key: &PodKey) -> Option<Timestamp> {
        self.lock().remove(key)
    }

    /// Tells of each, and since when it waits.
    pub(crate) fn each(&self, mut tell: impl FnMut(&PodKey, Timestamp)) {
        for (key, since) in self.lock().iter() {
            tell(key, *since);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PodKey, Timestamp>> {
        lock(&self.0)
    }
}
