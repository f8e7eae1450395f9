//! One node of the model: a Node and a NodeClaim merged, with the values derived from both.
//!
//! Answers to Karpenter's `pkg/controllers/state/statenode.go`. Derives, never decides.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityType, NodeRef, ProviderId, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use scheduling::pod::{Pod, PodKey};

use crate::facts::{ClaimFacts, NodeFacts};

/// A Node, a NodeClaim, or both.
#[derive(Debug, Clone)]
pub struct StateNode {
    objects: NodeObjects,
    /// Pods are expected on it until then.
    pub(crate) nominated_until: Option<Timestamp>,
    /// A disruption command is about to delete it.
    pub(crate) is_marked: bool,
}

/// Objects that there are of a node.
#[derive(Debug, Clone)]
enum NodeObjects {
    /// A Node of nobody's claim.
    Node(Arc<NodeFacts>),
    /// A launched NodeClaim whose Node is expected.
    Claim(Arc<ClaimFacts>),
    /// A NodeClaim with its Node.
    Both(Arc<NodeFacts>, Arc<ClaimFacts>),
}

/// Pods bound to a node, with their sums kept up to date.
#[derive(Debug, Clone, Default)]
pub struct BoundPods {
    pods: BTreeMap<PodKey, Arc<Pod>>,
    requests: Resources,
    daemon_requests: Resources,
}

impl StateNode {
    /// A Node without a claim.
    pub(crate) fn of_node(node: Arc<NodeFacts>) -> Self {
        Self::of(NodeObjects::Node(node))
    }

    /// A claim without a Node.
    pub(crate) fn of_claim(claim: Arc<ClaimFacts>) -> Self {
        Self::of(NodeObjects::Claim(claim))
    }

    fn of(objects: NodeObjects) -> Self {
        Self {
            objects,
            nominated_until: None,
            is_marked: false,
        }
    }

    /// This one, whose Node is now as told.
    pub(crate) fn with_node(&self, node: Arc<NodeFacts>) -> Self {
        self.with(match self.claim() {
            Some(claim) => NodeObjects::Both(node, Arc::clone(claim)),
            None => NodeObjects::Node(node),
        })
    }

    /// This one, whose claim is now as told.
    pub(crate) fn with_claim(&self, claim: Arc<ClaimFacts>) -> Self {
        self.with(match self.node() {
            Some(node) => NodeObjects::Both(Arc::clone(node), claim),
            None => NodeObjects::Claim(claim),
        })
    }

    /// The claim that is left when the Node is gone; `None` without one.
    pub(crate) fn without_node(&self) -> Option<Self> {
        let claim = Arc::clone(self.claim()?);
        Some(self.with(NodeObjects::Claim(claim)))
    }

    /// The Node that is left when the claim is gone; `None` without one.
    pub(crate) fn without_claim(&self) -> Option<Self> {
        let node = Arc::clone(self.node()?);
        Some(self.with(NodeObjects::Node(node)))
    }

    fn with(&self, objects: NodeObjects) -> Self {
        Self {
            objects,
            ..self.clone()
        }
    }

    /// The Node, once there is one.
    pub fn node(&self) -> Option<&Arc<NodeFacts>> {
        match &self.objects {
            NodeObjects::Node(node) | NodeObjects::Both(node, _) => Some(node),
            NodeObjects::Claim(_) => None,
        }
    }

    /// The NodeClaim of a managed node.
    pub fn claim(&self) -> Option<&Arc<ClaimFacts>> {
        match &self.objects {
            NodeObjects::Claim(claim) | NodeObjects::Both(_, claim) => Some(claim),
            NodeObjects::Node(_) => None,
        }
    }

    /// `spec.providerID`, from whichever object has it.
    pub fn provider_id(&self) -> Option<&ProviderId> {
        let of_claim = self.claim().and_then(|it| it.provider_id.as_ref());
        of_claim.or_else(|| self.node()?.provider_id.as_ref())
    }

    /// How it was bought, where it says so in a word that is known.
    pub fn capacity_type(&self) -> Option<CapacityType> {
        CapacityType::parse(self.label(labels::CAPACITY_TYPE)?)
    }

    /// Id of the reservation whose slot the node holds.
    pub fn reservation_id(&self) -> Option<&str> {
        match self.capacity_type()? {
            CapacityType::Reserved => self.name_in_label(labels::CAPACITY_RESERVATION_ID),
            CapacityType::Spot | CapacityType::OnDemand => None,
        }
    }

    /// Whether it has a NodeClaim, so that it is ours.
    pub fn is_managed(&self) -> bool {
        self.claim().is_some()
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
        match &self.objects {
            NodeObjects::Node(_) => true,
            NodeObjects::Claim(_) => false,
            NodeObjects::Both(node, _) => {
                node.labels.get(label).is_some_and(|value| value == "true")
            }
        }
    }

    /// What the Node says once it is registered, what the claim says before; where there is but one of them, what that
    /// one says.
    fn pick<'n, T>(
        &'n self,
        of_node: impl FnOnce(&'n NodeFacts) -> &'n T,
        of_claim: impl FnOnce(&'n ClaimFacts) -> &'n T,
    ) -> &'n T {
        match &self.objects {
            NodeObjects::Node(node) => of_node(node),
            NodeObjects::Both(node, _) if self.is_registered() => of_node(node),
            NodeObjects::Claim(claim) | NodeObjects::Both(_, claim) => of_claim(claim),
        }
    }

    /// Name of the Node once registered, of the claim before.
    pub fn name(&self) -> &str {
        self.pick(|node| &node.name, |claim| &claim.name)
    }

    /// Reference to it: by its Node once registered, by its claim before.
    pub fn node_ref(&self) -> NodeRef {
        match self.node_name().filter(|_| self.is_registered()) {
            Some(name) => NodeRef::node(name),
            None => NodeRef::claim(self.name()),
        }
    }

    /// By each object that there is of it.
    pub fn node_refs(&self) -> impl Iterator<Item = NodeRef> {
        let node = self.node_name().map(NodeRef::node);
        node.into_iter()
            .chain(self.claim_name().map(NodeRef::claim))
    }

    /// Name of the claim.
    pub fn claim_name(&self) -> Option<&str> {
        self.claim().map(|it| it.name.as_str())
    }

    /// Name of the Node.
    pub fn node_name(&self) -> Option<&str> {
        self.node().map(|it| it.name.as_str())
    }

    /// Labels of the Node once registered, of the claim before.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        self.pick(|node| &node.labels, |claim| &claim.labels)
    }

    /// Annotations of the Node once registered, of the claim before.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        self.pick(|node| &node.annotations, |claim| &claim.annotations)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).map(String::as_str)
    }

    /// What a label names: one that is there and empty names nothing.
    fn name_in_label(&self, key: &str) -> Option<&str> {
        self.label(key).filter(|it| !it.is_empty())
    }

    /// Name of the NodePool.
    pub fn node_pool(&self) -> Option<&str> {
        self.name_in_label(labels::NODEPOOL)
    }

    /// Name of the instance type.
    pub fn instance_type(&self) -> Option<&str> {
        self.name_in_label(labels::INSTANCE_TYPE)
    }

    /// Name of the zone.
    pub fn zone(&self) -> Option<&str> {
        self.name_in_label(labels::TOPOLOGY_ZONE)
    }

    /// Host name from the label; the name of the node without one.
    pub fn hostname(&self) -> &str {
        let labelled = self.name_in_label(labels::HOSTNAME);
        labelled.unwrap_or_else(|| self.name())
    }

    /// Taints that count for pods now.
    pub fn taints(&self) -> Vec<Taint> {
        let taints = self.pick(|node| &node.taints, |claim| &claim.taints);
        let is_rebooting = |claim: &&Arc<ClaimFacts>| claim.conditions.rebooting_at.is_some();
        let passing = |it: &&Arc<ClaimFacts>| !self.is_initialized() || is_rebooting(it);
        let Some(claim) = self.claim().filter(passing) else {
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
            .with_count(labels::RESOURCE_NODES, 1)
    }

    /// Resources for pods: those of the Node, filled up from the claim until it is initialized.
    pub fn allocatable(&self) -> Resources {
        self.resources(|node| &node.allocatable, |claim| &claim.allocatable)
    }

    fn resources(
        &self,
        of_node: impl Fn(&NodeFacts) -> &Resources,
        of_claim: impl Fn(&ClaimFacts) -> &Resources,
    ) -> Resources {
        match &self.objects {
            NodeObjects::Both(node, claim) if !self.is_initialized() => {
                // A young node may not know its devices yet; the claim does.
                let mut merged = of_node(node).clone();
                for (name, amount) in of_claim(claim).iter() {
                    if merged.get(name) == 0 {
                        merged.set(name, amount);
                    }
                }
                merged
            }
            NodeObjects::Node(node) | NodeObjects::Both(node, _) => of_node(node).clone(),
            NodeObjects::Claim(claim) => of_claim(claim).clone(),
        }
    }

    /// Whether a disruption command is about to delete it.
    pub fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// Whether it is being deleted, or a command is about to delete it.
    pub fn is_marked_for_deletion(&self) -> bool {
        self.is_marked || self.is_deleted()
    }

    /// Whether it is being deleted, or the cloud takes its instance away.
    pub fn is_deleted(&self) -> bool {
        match &self.objects {
            NodeObjects::Claim(claim) | NodeObjects::Both(_, claim) => {
                claim.deleted_at.is_some() || claim.conditions.instance_terminating_at.is_some()
            }
            NodeObjects::Node(node) => node.deleted_at.is_some(),
        }
    }

    /// `consolidateAfter` has passed since pods last came or went.
    pub fn is_consolidatable(&self) -> bool {
        self.claim()
            .is_some_and(|it| it.conditions.consolidatable_at.is_some())
    }

    /// Pods are expected on it.
    pub fn is_nominated(&self, now: Timestamp) -> bool {
        self.nominated_until.is_some_and(|until| now < until)
    }

    /// The Node is Ready.
    pub fn is_ready(&self) -> bool {
        self.node().is_some_and(|it| it.is_ready)
    }
}

impl BoundPods {
    /// The pods, by key.
    pub fn pods(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> {
        self.pods.values()
    }

    /// Number of pods bound to the node.
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
