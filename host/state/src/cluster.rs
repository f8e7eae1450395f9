//! The cluster model. Facts come in by [`Cluster::apply`] alone; beside it only copies of claims are forgotten, which
//! spare a read and decide nothing.
//!
//! Collections are shared with snapshots and copied only when written while a snapshot lives. What becomes of a kind of
//! object, and what of it is read, is in the file of its kind. Answers to Karpenter's
//! `pkg/controllers/state/cluster.go`.

mod capacity_buffers;
pub(crate) mod change;
pub(crate) mod consolidation_state;
mod daemon_sets;
mod devices;
mod event;
mod namespaces;
mod node_claims;
mod node_index;
mod nodes;
pub(crate) mod placement;
mod pod_disruption_budgets;
mod pods;
mod pools;
mod recent_claims;
mod resource_version;
mod seen_node;
mod volumes;
pub(crate) mod watched;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{CapacityBuffer, NodeClaim, NodeOverlay, NodePool, NodeRef, ObjectKey, ProviderId};
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey, ShapeTable};

use crate::devices::DeviceWorld;
use crate::missing_pods::owned::Owned;
use crate::pod_disruption_budget::Pdbs;
use crate::state_node::{BoundPods, StateNode};
use crate::volumes::Volumes;
use crate::workloads::Workloads;
use daemon_sets::DaemonSet;
use placement::Placement;
use pools::NodeClass;
use recent_claims::RecentClaims;
use seen_node::SeenNode;

pub use change::{
    Change, ChangedObject, Changes, NodeSummary, PodEnd, Refused, StateError, Versions,
};
pub use consolidation_state::ConsolidationState;
pub use event::{Event, ObjectEvent};
pub use watched::Watched;

/// The collections, each shared with the snapshots taken of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    /// By providerID, or by name for a foreign node without one.
    pub(crate) nodes: Arc<BTreeMap<String, Arc<StateNode>>>,
    /// Key in `nodes` of a Node's name.
    pub(crate) node_keys: Arc<BTreeMap<String, String>>,
    /// Names of Nodes: more than one of a providerID is an error worth telling.
    pub(crate) nodes_by_provider_id: Arc<BTreeMap<ProviderId, BTreeSet<String>>>,
    /// Key in `nodes` of a claim's name; none until it is launched.
    pub(crate) claim_keys: Arc<BTreeMap<String, Option<ProviderId>>>,
    pub(crate) pods: Arc<BTreeMap<PodKey, Arc<Pod>>>,
    /// Node or claim that a pod was placed on.
    pub(crate) places: Arc<Placement>,
    /// When a pod that had been placed was last bound, wherever that was.
    pub(crate) last_placed_bound_at: Option<Timestamp>,
    /// By Node name; also of Nodes not tracked yet.
    pub(crate) bound: Arc<BTreeMap<String, Arc<BoundPods>>>,
    /// Pods by UID of the controlling owner.
    pub(crate) owned: Arc<BTreeMap<String, Owned>>,
    /// When a pod with an owner was last seen for the first time.
    pub(crate) last_birth_at: Option<Timestamp>,
    pub(crate) node_pools: Arc<BTreeMap<String, Arc<NodePool>>>,
    pub(crate) node_classes: Arc<BTreeMap<String, NodeClass>>,
    pub(crate) node_overlays: Arc<BTreeMap<String, Arc<NodeOverlay>>>,
    pub(crate) daemon_sets: Arc<BTreeMap<ObjectKey, DaemonSet>>,
    pub(crate) pdbs: Arc<Pdbs>,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) workloads: Arc<Workloads>,
    pub(crate) devices: Arc<DeviceWorld>,
    pub(crate) capacity_buffers: Arc<BTreeMap<ObjectKey, Arc<CapacityBuffer>>>,
    pub(crate) namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    pub(crate) consolidation_state: ConsolidationState,
}

impl Data {
    /// A node by the name of its NodeClaim.
    pub(crate) fn node_of_claim(&self, claim: &str) -> Option<&Arc<StateNode>> {
        let key = self.claim_keys.get(claim)?.as_ref()?;
        self.nodes.get(key.as_str())
    }

    /// Key in `nodes`; none while nothing is launched for the claim.
    pub(crate) fn key(&self, node: &NodeRef) -> Option<&str> {
        match node {
            NodeRef::Node(name) => self.node_keys.get(&**name).map(String::as_str),
            NodeRef::Claim(name) => self
                .claim_keys
                .get(&**name)?
                .as_ref()
                .map(ProviderId::as_str),
        }
    }
}

/// The model of one cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    pub(crate) data: Data,
    pub(crate) shapes: ShapeTable,
    /// Live pods of each DaemonSet's UID, newest last.
    daemon_pods: BTreeMap<String, BTreeSet<(Option<Timestamp>, PodKey)>>,
    recent_claims: RecentClaims,
    /// By name, also those that are not in `nodes` because nothing tells yet which claim they belong to.
    seen_nodes: BTreeMap<String, SeenNode>,
    plans_untried_pods: bool,
    applied: u64,
}

impl Cluster {
    /// An empty model, which counts a pod as unschedulable when the scheduler says so.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty model that counts pods as unschedulable as soon as they are there, until the scheduler says otherwise:
    /// in a burst it gets to the last of them long after a node could have come for them.
    pub fn planning_untried_pods() -> Self {
        Self {
            plans_untried_pods: true,
            ..Self::default()
        }
    }

    /// Takes in one fact, and tells what it changed. `now` is when it was learned.
    pub fn apply(&mut self, now: Timestamp, event: Event) -> Result<Changes, Refused> {
        self.applied += 1;
        // Shapes of long gone pods go now and then, not with each pod.
        if self.applied.is_multiple_of(65_536) {
            self.shapes.shrink();
        }
        match event {
            Event::Object(ObjectEvent(change)) => return change.apply(self, now),
            Event::Nominated { node, until } => self.nominate(&node, until),
            Event::Placed { node, pods } => self.place(&node, pods),
            Event::PodMoved { pod, node } => self.pod_moved(now, &pod, node),
            Event::MarkedForDeletion(nodes) => self.mark(now, &nodes),
            Event::UnmarkedForDeletion(nodes) => self.unmark(now, &nodes),
            Event::OfferingsChanged => self.bump(now),
        }
        // Whoever sets a mark knows whom to wake.
        Ok(Changes::new())
    }

    /// Notes a change of what consolidation depends on; nothing else does.
    pub(crate) fn bump(&mut self, now: Timestamp) {
        let state = &mut self.data.consolidation_state;
        state.sequence += 1;
        state.changed_at = now;
    }

    /// A claim, whole, if it changed lately.
    pub fn recent_claim(&self, name: &str) -> Option<Arc<NodeClaim>> {
        self.recent_claims.get(name)
    }

    /// Forgets the copy of a claim: a write showed that it is old.
    pub fn forget_recent_claim(&mut self, name: &str) {
        self.recent_claims.forget(name);
    }

    /// Forgets the copies of claims that were there at the last call already: their claims are at rest.
    pub fn forget_claims_at_rest(&mut self) {
        self.recent_claims.rest();
    }

    /// Distinct pod shapes, for a gauge.
    pub fn shapes(&self) -> usize {
        self.shapes.len()
    }
}

#[cfg(test)]
mod tests;
