//! The cluster at one moment, cheap to take and never changing under its reader.
//!
//! Read-only; every query is by name or in order of name.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use apis::{CapacityBuffer, ConsolidationPolicy, Ec2NodeClass, NodeOverlay, NodePool};
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::{DaemonPod, ExistingNode, OfferingKey};
use scheduling::ranking::{FactsByOwner, Usage, UsageKey, WorkloadFacts};

use crate::cluster::model::{CONSOLIDATION_STATE_MAX_AGE_SECONDS, ConsolidationState, Data};
use crate::devices::DeviceWorld;
use crate::facts::NodeClassFacts;
use crate::pod_disruption_budget::Pdbs;
use crate::state_node::{BoundPods, StateNode};
use crate::volumes::Volumes;
use crate::workloads::Workloads;

/// How long kube-scheduler may take to look at a pod again that it could not place: its longest back-off, and the look itself.
const SCHEDULER_BACKOFF: SignedDuration = SignedDuration::from_secs(12);
/// How long it may take to get to the pods of a node that opened, among a crowd of others.
const SCHEDULER_LATE: SignedDuration = SignedDuration::from_secs(60);

/// With so many pods left whose node is open, it is behind: it places 25 to 100 a second.
const BACKLOG: usize = 100;

/// A view of the model as it was when taken.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) data: Data,
    nothing: Arc<BoundPods>,
}

impl Snapshot {
    pub(crate) fn new(data: Data) -> Self {
        Self {
            data,
            nothing: Arc::new(BoundPods::default()),
        }
    }

    /// Every tracked node, in order of its key.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Arc<StateNode>> {
        self.data.nodes.values()
    }

    /// A node by the name of its Node or of its NodeClaim.
    pub fn node(&self, name: &str) -> Option<&Arc<StateNode>> {
        let keys = (&self.data.node_keys, &self.data.claim_keys);
        let key = keys.0.get(name).or_else(|| keys.1.get(name))?;
        self.data.nodes.get(key)
    }

    /// The node that a pod was placed on and that is still being made for it.
    pub fn place_in_the_making(&self, pod: &PodKey) -> Option<&Arc<StateNode>> {
        let node = self.node(self.data.places.get(pod)?)?;
        (!node.is_initialized() && !node.is_marked_for_deletion()).then_some(node)
    }

    /// The node that a pod was placed on and that opened so lately, or was given a pod so lately, that the scheduler may still be
    /// about to bind it. One that is behind gives others a pod first.
    pub fn place_just_opened(
        &self,
        pod: &PodKey,
        is_scheduler_behind: bool,
        now: Timestamp,
    ) -> Option<&Arc<StateNode>> {
        let node = self.place(pod)?;
        let claim = node.claim.as_ref()?;
        let conditions = &claim.conditions;
        // The label that opens a node is written first, and a pass may come before the condition that says since when.
        let opened_at = conditions.initialized_at.or(conditions.registered_at)?;
        let last_pod_at = match (conditions.initialized_at, claim.last_pod_event_at) {
            (None, _) => now,
            _ if is_scheduler_behind => now,
            (Some(opened_at), last) => last.unwrap_or(opened_at).max(opened_at),
        };
        let is_fresh = now.duration_since(opened_at) < SCHEDULER_LATE
            && now.duration_since(last_pod_at) < SCHEDULER_BACKOFF;
        let is_open = node.is_initialized() || conditions.initialized_at.is_some();
        (is_open && is_fresh && !node.is_marked_for_deletion()).then_some(node)
    }

    /// Whether the scheduler has yet to get to many of these pods, whose node is open: it binds others meanwhile.
    pub fn is_scheduler_behind(&self, pods: &[Arc<Pod>], now: Timestamp) -> bool {
        let binds = self
            .data
            .last_placed_bound_at
            .is_some_and(|at| now.duration_since(at) < SCHEDULER_BACKOFF);
        let is_open = |pod: &&Arc<Pod>| {
            let claim = self.place(&pod.key).and_then(|node| node.claim.as_ref());
            claim.is_some_and(|it| it.conditions.initialized_at.is_some())
        };
        binds && pods.iter().filter(is_open).take(BACKLOG).count() == BACKLOG
    }

    /// The node that a pod was last placed on.
    pub fn place(&self, pod: &PodKey) -> Option<&Arc<StateNode>> {
        self.node(self.data.places.get(pod)?)
    }

    /// Pods that were placed on the node, by its name or that of its claim, and still wait.
    pub fn placed_on(&self, node: &StateNode) -> Vec<&Arc<Pod>> {
        let names = [node.node_name(), node.claim_name()];
        let places = self.data.places.iter();
        let here = places.filter(|(_, place)| names.contains(&Some(&***place)));
        let pods = here.filter_map(|(key, _)| self.pod(key));
        pods.filter(|pod| pod.is_provisionable()).collect()
    }

    /// A node by the name of its NodeClaim.
    pub fn node_of_claim(&self, claim: &str) -> Option<&Arc<StateNode>> {
        self.data.nodes.get(self.data.claim_keys.get(claim)?)
    }

    /// A node by its providerID.
    pub fn node_by_provider_id(&self, provider_id: &str) -> Option<&Arc<StateNode>> {
        self.data.nodes.get(provider_id)
    }

    /// Whether a claim of this name is known, launched or not.
    pub fn has_claim(&self, name: &str) -> bool {
        self.data.claim_keys.contains_key(name)
    }

    /// Pods bound to a node.
    pub fn bound(&self, node: &StateNode) -> &Arc<BoundPods> {
        node.node_name()
            .and_then(|name| self.data.bound.get(name))
            .unwrap_or(&self.nothing)
    }

    /// Pods bound to a Node, by its name, tracked or not.
    pub fn bound_to(&self, node_name: &str) -> &Arc<BoundPods> {
        self.data.bound.get(node_name).unwrap_or(&self.nothing)
    }

    /// Every pod that is not terminal.
    pub fn pods(&self) -> impl ExactSizeIterator<Item = &Arc<Pod>> {
        self.data.pods.values()
    }

    /// A pod.
    pub fn pod(&self, key: &PodKey) -> Option<&Arc<Pod>> {
        self.data.pods.get(key)
    }

    /// Pods that its controlling owner keeps, this one included.
    pub fn replicas(&self, pod: &Pod) -> u32 {
        pod.shape
            .owner
            .as_ref()
            .and_then(|owner| self.data.owned.get(&owner.uid))
            .map_or(1, |owned| owned.pods.max(1))
    }

    /// Every NodePool, by name.
    pub fn node_pools(&self) -> impl ExactSizeIterator<Item = &Arc<NodePool>> {
        self.data.node_pools.values()
    }

    /// A NodePool.
    pub fn node_pool(&self, name: &str) -> Option<&Arc<NodePool>> {
        self.data.node_pools.get(name)
    }

    /// An EC2NodeClass.
    pub fn node_class(&self, name: &str) -> Option<&Arc<NodeClassFacts>> {
        self.data.node_classes.get(name).map(|it| &it.facts)
    }

    /// An EC2NodeClass as the API has it.
    pub fn node_class_object(&self, name: &str) -> Option<&Arc<Ec2NodeClass>> {
        self.data.node_classes.get(name).map(|it| &it.object)
    }

    /// Names of the Nodes with this providerID, also of those whose claim is not known yet.
    pub fn node_names_of(&self, provider_id: &str) -> impl Iterator<Item = &str> {
        let names = self.data.nodes_by_provider_id.get(provider_id);
        names.into_iter().flatten().map(String::as_str)
    }

    /// Every NodeOverlay, by name.
    pub fn node_overlays(&self) -> impl ExactSizeIterator<Item = &Arc<NodeOverlay>> {
        self.data.node_overlays.values()
    }

    /// The PodDisruptionBudgets.
    pub fn pdbs(&self) -> &Pdbs {
        &self.data.pdbs
    }

    /// The volumes.
    pub fn volumes(&self) -> &Volumes {
        &self.data.volumes
    }

    /// Services and workloads.
    pub fn workloads(&self) -> &Workloads {
        &self.data.workloads
    }

    /// Devices and claims.
    pub fn devices(&self) -> &DeviceWorld {
        &self.data.devices
    }

    /// Every CapacityBuffer, by namespace and name.
    pub fn capacity_buffers(&self) -> impl ExactSizeIterator<Item = &Arc<CapacityBuffer>> {
        self.data.capacity_buffers.values()
    }

    /// Labels of the namespaces.
    pub fn namespaces(&self) -> &BTreeMap<String, BTreeMap<String, String>> {
        &self.data.namespaces
    }

    /// Tells whether anything that matters to consolidation changed. Grows old by itself every five
    /// minutes, so that a method that found nothing looks again.
    pub fn consolidation_state(&self, now: Timestamp) -> ConsolidationState {
        let state = self.data.consolidation_state;
        let age = now.duration_since(state.changed_at).as_secs();
        let steps = age.div_euclid(CONSOLIDATION_STATE_MAX_AGE_SECONDS).max(0);
        let grown = SignedDuration::from_secs(steps * CONSOLIDATION_STATE_MAX_AGE_SECONDS);
        ConsolidationState {
            changed_at: state
                .changed_at
                .saturating_add(grown)
                .unwrap_or(state.changed_at),
            ..state
        }
    }

    /// Capacity of the pool's nodes that are here to stay, with the pseudo resource `nodes`.
    pub fn pool_resources(&self, pool: &str) -> Resources {
        let mut total = Resources::new();
        for node in self.nodes() {
            if node.node_pool() == Some(pool) && node.is_managed() && !node.is_marked_for_deletion()
            {
                total.add_assign(&node.capacity());
            }
        }
        total
    }

    /// Allocatable less what bound pods request.
    pub fn available(&self, node: &StateNode) -> Resources {
        node.allocatable().sub(self.bound(node).requests())
    }

    /// One pod a DaemonSet: the newest live one, else the template's.
    pub fn daemon_pods(&self) -> Vec<DaemonPod> {
        self.data
            .daemon_sets
            .iter()
            .map(|(key, daemon_set)| {
                let live = daemon_set.newest_pod.as_ref().and_then(|key| self.pod(key));
                let template = &daemon_set.template;
                let shape = match live {
                    // The live pod is pinned to its node by a field match that the template does not have.
                    Some(live)
                        if live.shape.has_match_fields
                            || !template.required_node_affinity.is_empty() =>
                    {
                        let mut shape = (*live.shape).clone();
                        shape.has_match_fields = false;
                        shape
                            .required_node_affinity
                            .clone_from(&template.required_node_affinity);
                        Arc::new(shape)
                    }
                    Some(live) => Arc::clone(&live.shape),
                    None => Arc::clone(template),
                };
                DaemonPod {
                    key: key.clone(),
                    shape,
                }
            })
            .collect()
    }

    /// Managed nodes by pool and offering, those on their way included once it is known what they are. Prices are the
    /// caller's to add.
    pub fn usage(&self) -> BTreeMap<UsageKey, Usage> {
        let mut usage: BTreeMap<UsageKey, Usage> = BTreeMap::new();
        for node in self.nodes().filter(|it| it.is_managed()) {
            let instance_type = node.label(labels::INSTANCE_TYPE);
            if instance_type.is_empty() {
                continue;
            }
            let key = UsageKey {
                pool: node.label(labels::NODEPOOL).to_owned(),
                offering: OfferingKey {
                    instance_type: instance_type.to_owned(),
                    zone: node.label(labels::TOPOLOGY_ZONE).to_owned(),
                    capacity_type: node.label(labels::CAPACITY_TYPE).to_owned(),
                },
            };
            let count = usage.entry(key).or_default();
            count.nodes += 1;
            count.launching += u32::from(!node.is_registered());
        }
        usage
    }

    /// What is known of the owners of some pods, by UID.
    pub fn owners<'p>(&self, pods: impl Iterator<Item = &'p Arc<Pod>>) -> FactsByOwner {
        let mut facts = FactsByOwner::new();
        for pod in pods {
            let Some(owner) = &pod.shape.owner else {
                continue;
            };
            if !facts.contains_key(&owner.uid) {
                let fact = WorkloadFacts {
                    replicas: self.replicas(pod),
                    disruptions_allowed: self.pdbs().room(pod).unwrap_or(u32::MAX),
                };
                facts.insert(owner.uid.clone(), fact);
            }
        }
        facts
    }

    /// Whether pods came or went too recently for consolidation to send others there.
    pub fn is_settling(&self, node: &StateNode, now: Timestamp) -> bool {
        let Some(claim) = &node.claim else {
            return false;
        };
        let Some(pool) = node.node_pool().and_then(|name| self.node_pool(name)) else {
            return false;
        };
        let disruption = &pool.spec.disruption;
        let counts = match disruption.consolidation_policy {
            ConsolidationPolicy::WhenEmpty
            | ConsolidationPolicy::WhenEmptyOrUnderutilized
            | ConsolidationPolicy::Balanced => disruption.consolidate_after.duration(),
        };
        let since = claim.last_pod_event_at.or(claim.conditions.initialized_at);
        match (counts, since) {
            (Some(after), Some(since)) => now.duration_since(since) < after.to_signed_duration(),
            (Some(_) | None, _) => false,
        }
    }

    /// A node as the solver sees it.
    pub fn existing_node(&self, node: &StateNode, now: Timestamp) -> ExistingNode {
        let bound = self.bound(node);
        let limits = node
            .node_name()
            .and_then(|name| self.volumes().limits.get(name));
        ExistingNode {
            name: node.name().to_owned(),
            hostname: node.hostname().to_owned(),
            pool: node.node_pool().map(str::to_owned),
            node_claim: node.claim_name().map(str::to_owned),
            labels: node.labels().clone(),
            taints: node.taints(),
            capacity: node.capacity(),
            allocatable: node.allocatable(),
            pods: bound.pods().cloned().collect(),
            requests: bound.requests().clone(),
            daemon_requests: bound.daemon_requests().clone(),
            is_initialized: node.is_initialized(),
            is_schedulable: !node.is_marked_for_deletion(),
            is_settling: self.is_settling(node, now),
            volume_limits: limits
                .into_iter()
                .flatten()
                .filter_map(|(driver, limit)| Some((driver.clone(), (*limit)?)))
                .collect(),
            volumes: self.volumes().attached(bound.pods()),
        }
    }
}
