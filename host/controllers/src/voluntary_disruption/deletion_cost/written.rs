//! Deletion costs on pods that are ours to write.
//!
//! It stays out of the model: what we write ourselves must not decide anything, nor make equal pods differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use locks::lock;
use scheduling::pod::PodKey;

/// Values of `controller.kubernetes.io/pod-deletion-cost`, by pod.
#[derive(Debug, Default)]
pub(crate) struct WrittenCosts(Mutex<BTreeMap<PodKey, String>>);

impl WrittenCosts {
    /// The pod bears this cost, or none.
    pub(crate) fn set(&self, pod: &PodKey, cost: Option<String>) {
        let mut costs = self.lock();
        match cost {
            Some(cost) => costs.insert(pod.clone(), cost),
            None => costs.remove(pod),
        };
    }

    /// Forgets all pods but these.
    pub(crate) fn retain(&self, pods: &BTreeSet<PodKey>) {
        self.lock().retain(|pod, _| pods.contains(pod));
    }

    /// All of them, as they are while this is held.
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<PodKey, String>> {
        lock(&self.0)
    }
}
