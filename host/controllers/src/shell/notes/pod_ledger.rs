//! Since when each pending pod waits for a decision, and which pods each new claim is for.
//!
//! Bounded by the pods and claims that exist; nothing is decided here. Answers to the pod scheduling maps of
//! Karpenter's `pkg/controllers/state/cluster.go`.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cloudprovider::sync::lock;
use jiff::Timestamp;
use scheduling::pod::PodKey;

/// Facts about pods between their first sight and their node.
#[derive(Debug, Default)]
pub(crate) struct PodLedger {
    first_seen: Mutex<BTreeMap<PodKey, Timestamp>>,
    pods_of_claim: Mutex<BTreeMap<String, Vec<PodKey>>>,
}

impl PodLedger {
    /// A pod waits for a decision.
    pub(crate) fn saw(&self, key: &PodKey, now: Timestamp) {
        lock(&self.first_seen).entry(key.clone()).or_insert(now);
    }

    /// A pod got its first decision, or is gone; answers since when it waited.
    pub(crate) fn decided(&self, key: &PodKey) -> Option<Timestamp> {
        lock(&self.first_seen).remove(key)
    }

    /// Tells of each pod that waits for its first decision, and since when.
    pub(crate) fn each_undecided(&self, mut tell: impl FnMut(&PodKey, Timestamp)) {
        for (key, since) in lock(&self.first_seen).iter() {
            tell(key, *since);
        }
    }

    /// A claim was made for these pods.
    pub(crate) fn claim_for(&self, claim: &str, pods: Vec<PodKey>) {
        lock(&self.pods_of_claim).insert(claim.to_owned(), pods);
    }

    /// The pods that a claim was made for, as far as this process knows.
    pub(crate) fn pods_for(&self, claim: &str) -> Vec<PodKey> {
        let pods = lock(&self.pods_of_claim);
        pods.get(claim).cloned().unwrap_or_default()
    }

    /// The claim has a node, or failed; answers the pods it was made for.
    pub(crate) fn settle_claim(&self, claim: &str) -> Vec<PodKey> {
        lock(&self.pods_of_claim).remove(claim).unwrap_or_default()
    }
}
