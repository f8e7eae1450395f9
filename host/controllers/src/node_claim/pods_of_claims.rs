//! Which pods each new claim was made for, until it has a node, failed or is gone.
//!
//! Bounded by the claims that exist; nothing is decided here. Answers to the pod scheduling maps of Karpenter's
//! `pkg/controllers/state/cluster.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use locks::lock;
use scheduling::pod::PodKey;

/// By the names of claims, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct PodsOfClaims(Mutex<BTreeMap<String, Vec<PodKey>>>);

impl PodsOfClaims {
    /// A claim was made for these pods.
    pub(crate) fn set(&self, claim: &str, pods: Vec<PodKey>) {
        self.lock().insert(claim.to_owned(), pods);
    }

    /// The pods that a claim was made for.
    pub(crate) fn get(&self, claim: &str) -> Vec<PodKey> {
        self.lock().get(claim).cloned().unwrap_or_default()
    }

    /// The claim has a node, failed or is gone; answers the pods it was made for.
    pub(crate) fn settle(&self, claim: &str) -> Vec<PodKey> {
        self.lock().remove(claim).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<PodKey>>> {
        lock(&self.0)
    }
}
