//! Since when each pending pod waits for its first decision, and which pods had theirs.
//!
//! Bounded by the pods that exist; nothing is decided here. Answers to the pod scheduling maps of Karpenter's
//! `pkg/controllers/state/cluster.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;
use locks::lock;
use scheduling::pod::PodKey;

/// By the keys of pods, from when each was first seen until it is bound or gone; none once the first decision is made,
/// which is remembered, as a pod that waits for its node is looked at again and again.
#[derive(Debug, Default)]
pub(crate) struct UndecidedPods(Mutex<BTreeMap<PodKey, Option<Timestamp>>>);

impl UndecidedPods {
    /// A pod waits for a decision, its first or another.
    pub(crate) fn saw(&self, key: &PodKey, now: Timestamp) {
        self.lock().entry(key.clone()).or_insert(Some(now));
    }

    /// A pod got a decision; answers since when it waited for it, if it is the first. One that was not seen, or is gone
    /// by now, is not remembered: nobody would come to forget it.
    pub(crate) fn decided(&self, key: &PodKey) -> Option<Timestamp> {
        self.lock().get_mut(key)?.take()
    }

    /// A pod is bound or gone.
    pub(crate) fn forget(&self, key: &PodKey) {
        self.lock().remove(key);
    }

    /// Tells of each that waits for its first decision, and since when.
    pub(crate) fn each(&self, mut tell: impl FnMut(&PodKey, Timestamp)) {
        for (key, since) in self.lock().iter() {
            if let Some(since) = since {
                tell(key, *since);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PodKey, Option<Timestamp>>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_still_waits_has_had_its_first_decision() {
        let (pods, key) = (UndecidedPods::default(), PodKey::new("shop", "web"));
        let at = |second| Timestamp::from_second(second).unwrap();
        let waiting = || {
            let mut count = 0;
            pods.each(|_, _| count += 1);
            count
        };
        pods.saw(&key, at(1));
        pods.saw(&key, at(2));
        assert_eq!(waiting(), 1);
        assert_eq!(pods.decided(&key), Some(at(1)));
        pods.saw(&key, at(11));
        assert_eq!((waiting(), pods.decided(&key)), (0, None));
        // Another of the same name has another.
        pods.forget(&key);
        assert_eq!(pods.decided(&key), None);
        pods.saw(&key, at(21));
        assert_eq!(pods.decided(&key), Some(at(21)));
    }
}
