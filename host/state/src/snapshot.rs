//! The cluster at one moment, cheap to take and never changing under its reader.
//!
//! Read-only; every query is by name or in order of name.

mod places;
mod solver_input;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityBuffer, Ec2NodeClass, NodeOverlay, NodePool};
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey};

use crate::cluster::model::{CONSOLIDATION_STATE_MAX_AGE_SECONDS, ConsolidationState, Data};
use crate::devices::DeviceWorld;
use crate::facts::NodeClassFacts;
use crate::pod_disruption_budget::Pdbs;
use crate::state_node::{BoundPods, StateNode};
use crate::volumes::Volumes;
use crate::workloads::Workloads;

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
}
