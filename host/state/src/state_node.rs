//! One node of the model: a Node and a NodeClaim merged, with the values derived from both.
//!
//! Answers to Karpenter's `pkg/controllers/state/statenode.go`. Derives, never decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityType, ProviderId, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use scheduling::pod::{Pod, PodKey};

use crate::facts::{ClaimFacts, NodeFacts};
use crate::pod::PodLife;

/// Labels and annotations of what is neither.
static NOTHING: BTreeMap<String, String> = BTreeMap::new();

/// A Node, a NodeClaim, or both.
#[derive(Debug, Clone, Default)]
pub struct StateNode {
    /// The Node, once there is one.
    pub node: Option<Arc<NodeFacts>>,
    /// The NodeClaim of a managed node.
    pub claim: Option<Arc<ClaimFacts>>,
    /// Pods are expected on it until then.
    pub nominated_until: Option<Timestamp>,
    /// A disruption command is about to delete it.
    pub is_marked: bool,
}

/// Pods bound to a node, with their sums kept up to date.
#[derive(Debug, Clone, Default)]
pub struct BoundPods {
    pods: BTreeMap<PodKey, Arc<Pod>>,
    requests: Resources,
    daemon_requests: Resources,
}

impl StateNode {
    /// `spec.providerID`, from whichever object has it.
    pub fn provider_id(&self) -> Option<&ProviderId> {
        let claim = self.claim.as_ref().and_then(|it| it.provider_id.as_ref());
        claim.or_else(|| self.node.as_ref()?.provider_id.as_ref())
    }

    /// How it was bought, where it says so in a word that is known.
    pub fn capacity_type(&self) -> Option<CapacityType> {
        CapacityType::parse(self.label(labels::CAPACITY_TYPE))
    }

    /// Made by us.
    pub fn is_managed(&self) -> bool {
        self.claim.is_some()
    }

    /// The node joined the cluster as the claim's.
    pub fn is_registered(&self) -> bool {
        self.is_at_stage(labels::REGISTERED)
    }

    /// The node took its first step as a useful one.
    pub fn is_initialized(&self) -> bool {
        self.is_at_stage(labels::INITIALIZED)
    }

    fn is_at_stage(&self, label: &str) -> bool {
        !self.is_managed()
            || self
                .node
                .as_ref()
                .is_some_and(|it| it.labels.get(label).is_some_and(|value| value == "true"))
    }

    /// What the Node says once it is registered, what the claim says before; where there is but one of them, what that
    /// one says.
    fn pick<'n, T>(
        &'n self,
        of_node: impl FnOnce(&'n NodeFacts) -> &'n T,
        of_claim: impl FnOnce(&'n ClaimFacts) -> &'n T,
    ) -> Option<&'n T> {
        match (&self.node, &self.claim) {
            (Some(node), _) if self.is_registered() => Some(of_node(node)),
            (_, Some(claim)) => Some(of_claim(claim)),
            (Some(node), None) => Some(of_node(node)),
            (None, None) => None,
        }
    }

    /// Name of the Node once registered, of the claim before.
    pub fn name(&self) -> &str {
        let name = self.pick(|node| &node.name, |claim| &claim.name);
        name.map_or("", String::as_str)
    }

    /// Name of the claim.
    pub fn claim_name(&self) -> Option<&str> {
        self.claim.as_ref().map(|it| it.name.as_str())
    }

    /// Name of the Node.
    pub fn node_name(&self) -> Option<&str> {
        self.node.as_ref().map(|it| it.name.as_str())
    }

    /// Labels of the Node once registered, of the claim before.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        self.pick(|node| &node.labels, |claim| &claim.labels)
            .unwrap_or(&NOTHING)
    }

    /// Annotations of the Node once registered, of the claim before.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        self.pick(|node| &node.annotations, |claim| &claim.annotations)
            .unwrap_or(&NOTHING)
    }

    /// A label's value, empty without one.
    pub fn label(&self, key: &str) -> &str {
        self.labels().get(key).map_or("", String::as_str)
    }

    /// Name of the NodePool, if it has one.
    pub fn node_pool(&self) -> Option<&str> {
        Some(self.label(labels::NODEPOOL)).filter(|it| !it.is_empty())
    }

    /// Host name.
    pub fn hostname(&self) -> &str {
        match self.label(labels::HOSTNAME) {
            "" => self.name(),
            hostname => hostname,
        }
    }

    /// Taints that count for pods now.
    pub fn taints(&self) -> Vec<Taint> {
        let Some(taints) = self.pick(|node| &node.taints, |claim| &claim.taints) else {
            return Vec::new();
        };
        let is_rebooting = |claim: &&Arc<ClaimFacts>| claim.conditions.rebooting_at.is_some();
        let passing = |it: &&Arc<ClaimFacts>| !self.is_initialized() || is_rebooting(it);
        let Some(claim) = self.claim.as_ref().filter(passing) else {
            return taints.clone();
        };
        let passes = |taint: &&Taint| {
            !labels::is_known_ephemeral_taint(taint)
                // It comes back, so nothing need be bought in its place.
                && taint.key != labels::REBOOTING_TAINT_KEY
                && !claim
                    .startup_taints
                    .iter()
                    .any(|it| it.key == taint.key && it.effect == taint.effect)
        };
        taints.iter().filter(passes).cloned().collect()
    }

    /// Capacity, with the pseudo resource `nodes`.
    pub fn capacity(&self) -> Resources {
        self.resources(|node| &node.capacity, |claim| &claim.capacity)
            .with(labels::RESOURCE_NODES, 1000)
    }

    /// Allocatable.
    pub fn allocatable(&self) -> Resources {
        self.resources(|node| &node.allocatable, |claim| &claim.allocatable)
    }

    fn resources(
        &self,
        of_node: impl Fn(&NodeFacts) -> &Resources,
        of_claim: impl Fn(&ClaimFacts) -> &Resources,
    ) -> Resources {
        match (&self.node, &self.claim) {
            (Some(node), Some(claim)) if !self.is_initialized() => {
                // A young node may not know its devices yet; the claim does.
                let mut merged = of_node(node).clone();
                for (name, amount) in of_claim(claim).iter() {
                    if merged.get(name) == 0 {
                        merged.set(name, amount);
                    }
                }
                merged
            }
            (Some(node), _) => of_node(node).clone(),
            (None, Some(claim)) => of_claim(claim).clone(),
            (None, None) => Resources::new(),
        }
    }

    /// Going, or about to.
    pub fn is_marked_for_deletion(&self) -> bool {
        self.is_marked || self.is_deleted()
    }

    /// Going.
    pub fn is_deleted(&self) -> bool {
        match (&self.claim, &self.node) {
            (Some(claim), _) => {
                claim.deleted_at.is_some() || claim.conditions.instance_terminating_at.is_some()
            }
            (None, Some(node)) => node.deleted_at.is_some(),
            (None, None) => false,
        }
    }

    /// `consolidateAfter` has passed since pods last came or went.
    pub fn is_consolidatable(&self) -> bool {
        self.claim
            .as_ref()
            .is_some_and(|it| it.conditions.consolidatable_at.is_some())
    }

    /// Pods are expected on it.
    pub fn is_nominated(&self, now: Timestamp) -> bool {
        self.nominated_until.is_some_and(|until| now < until)
    }

    /// The Node is Ready.
    pub fn is_ready(&self) -> bool {
        self.node.as_ref().is_some_and(|it| it.is_ready)
    }
}

impl BoundPods {
    /// The pods, by key.
    pub fn pods(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> {
        self.pods.values()
    }

    /// Number of pods.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }

    /// Requests of all of them.
    pub fn requests(&self) -> &Resources {
        &self.requests
    }

    /// Requests of those that a DaemonSet owns.
    pub fn daemon_requests(&self) -> &Resources {
        &self.daemon_requests
    }

    /// One plus the positive eviction costs of the pods that are not daemons.
    pub fn disruption_cost(&self) -> f64 {
        1.0 + self
            .pods()
            .filter(|pod| !pod.is_daemon_or_mirror())
            .map(|pod| pod.eviction_cost().max(0.0))
            .sum::<f64>()
    }

    pub(crate) fn insert(&mut self, pod: Arc<Pod>) {
        self.remove(&pod.key);
        self.requests.add_assign(&pod.shape.requests);
        if pod.is_owned_by_daemon_set() {
            self.daemon_requests.add_assign(&pod.shape.requests);
        }
        self.pods.insert(pod.key.clone(), pod);
    }

    pub(crate) fn remove(&mut self, key: &PodKey) {
        if let Some(pod) = self.pods.remove(key) {
            self.requests.sub_assign(&pod.shape.requests);
            if pod.is_owned_by_daemon_set() {
                self.daemon_requests.sub_assign(&pod.shape.requests);
            }
        }
    }
}
