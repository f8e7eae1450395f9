//! The cluster model. [`Cluster::apply`] is its only mutation.
//!
//! Collections are shared with snapshots and copied only when written while a snapshot lives. Answers to
//! Karpenter's `pkg/controllers/state/cluster.go`.

mod daemon_sets;
mod event;
mod namespaces;
mod nodes;
mod pods;
pub(crate) mod pools;
mod recent_claims;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey, PodShape, ShapeTable};

use crate::coming::Owned;
use crate::devices::DeviceWorld;
use crate::facts::NodeClassFacts;
use crate::pod_disruption_budget::Pdbs;
use crate::snapshot::Snapshot;
use crate::state_node::{BoundPods, StateNode};
use crate::volumes::Volumes;
use crate::workloads::Workloads;

pub use event::{Change, Changes, Event, NodeSight, ObjectEvent, Refused, StateError, Versions};
pub use watched::Watched;

use nodes::SeenNode;
use recent_claims::RecentClaims;

/// A consolidation that found nothing looks again after this long, even if nothing changed.
pub(crate) const CONSOLIDATION_STATE_MAX_AGE_SECONDS: i64 = 300;

/// The collections, each shared with the snapshots taken of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    /// By providerID, or by name for a foreign node without one.
    pub(crate) nodes: Arc<BTreeMap<String, Arc<StateNode>>>,
    /// Key in `nodes` of a Node's name.
    pub(crate) node_keys: Arc<BTreeMap<String, String>>,
    /// By name, also those that are not in `nodes` because nothing tells yet which claim they belong to.
    seen_nodes: Arc<BTreeMap<String, SeenNode>>,
    /// Names of Nodes: more than one of a providerID is an error worth telling.
    pub(crate) nodes_by_provider_id: Arc<BTreeMap<String, BTreeSet<String>>>,
    /// Key in `nodes` of a claim's name; empty until it is launched.
    pub(crate) claim_keys: Arc<BTreeMap<String, String>>,
    pub(crate) pods: Arc<BTreeMap<PodKey, Arc<Pod>>>,
    /// Node or claim that a pod was placed on; the name may be of something that is gone.
    pub(crate) places: Arc<BTreeMap<PodKey, Arc<str>>>,
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
    pub(crate) daemon_sets: Arc<BTreeMap<PodKey, DaemonSet>>,
    pub(crate) pdbs: Arc<Pdbs>,
    pub(crate) volumes: Arc<Volumes>,
    pub(crate) workloads: Arc<Workloads>,
    pub(crate) devices: Arc<DeviceWorld>,
    pub(crate) capacity_buffers: Arc<BTreeMap<PodKey, Arc<CapacityBuffer>>>,
    pub(crate) namespaces: Arc<BTreeMap<String, BTreeMap<String, String>>>,
    pub(crate) consolidation_state: ConsolidationState,
}

/// An EC2NodeClass.
#[derive(Debug, Clone)]
pub(crate) struct NodeClass {
    pub(crate) facts: Arc<NodeClassFacts>,
    pub(crate) object: Arc<Ec2NodeClass>,
}

/// A DaemonSet: the pod its template would start.
#[derive(Debug, Clone)]
pub(crate) struct DaemonSet {
    pub(crate) uid: String,
    pub(crate) template: Arc<PodShape>,
    /// The live pod that tells best what the next one asks for.
    pub(crate) newest_pod: Option<PodKey>,
}

/// Tells whether anything that matters to consolidation changed since an earlier look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ConsolidationState {
    /// Changes so far.
    pub sequence: u64,
    /// When the latest was.
    pub changed_at: Timestamp,
}

/// The model of one cluster.
#[derive(Debug, Default)]
pub struct Cluster {
    pub(crate) data: Data,
    pub(crate) shapes: ShapeTable,
    /// Live pods of each DaemonSet's UID, newest last.
    daemon_pods: BTreeMap<String, BTreeSet<(Option<Timestamp>, PodKey)>>,
    recent_claims: RecentClaims,
    applied: u64,
}

/// Whether the model may be relied on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncGate {
    /// It may.
    Synced,
    /// Claims without an instance yet: their capacity is unknown, so nothing may be decided.
    Unlaunched(Vec<String>),
    /// The API has objects that the model has not seen.
    Missing(Vec<String>),
}

impl Cluster {
    /// An empty model.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in one fact, and tells what it changed. `now` is when it was learned.
    pub fn apply(&mut self, now: Timestamp, event: Event) -> Result<Changes, Refused> {
        self.applied += 1;
        // Shapes of long gone pods go now and then, not with each pod.
        if self.applied.is_multiple_of(65_536) {
            self.shapes.shrink();
        }
        match event {
            Event::Object(ObjectEvent(said)) => return said.apply(self, now),
            Event::Nominated { name, until } => self.nominated(&name, until),
            Event::Placed { name, pods } => self.placed(&name, pods),
            Event::PodMoved { pod, node } => self.pod_moved(now, &pod, node),
            Event::MarkedForDeletion(names) => self.marked(now, &names, true),
            Event::UnmarkedForDeletion(names) => self.marked(now, &names, false),
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

    /// The model as it is now; later changes do not show in it.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.data.clone())
    }

    /// Whether every claim has its instance. Asked before each decision.
    pub fn sync_gate(&self) -> SyncGate {
        let unlaunched: Vec<String> = self
            .data
            .claim_keys
            .iter()
            .filter(|(_, key)| key.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        if unlaunched.is_empty() {
            SyncGate::Synced
        } else {
            SyncGate::Unlaunched(unlaunched)
        }
    }

    /// The gate of the first time: also everything the API listed must have been seen.
    pub fn first_sync_gate<'a>(
        &self,
        claims: impl IntoIterator<Item = &'a str>,
        nodes: impl IntoIterator<Item = &'a str>,
    ) -> SyncGate {
        let missing_claims = claims
            .into_iter()
            .filter(|it| !self.data.claim_keys.contains_key(*it));
        let missing_nodes = nodes
            .into_iter()
            .filter(|it| !self.data.node_keys.contains_key(*it));
        let missing: Vec<String> = missing_claims
            .chain(missing_nodes)
            .map(str::to_owned)
            .collect();
        if missing.is_empty() {
            self.sync_gate()
        } else {
            SyncGate::Missing(missing)
        }
    }

    /// Distinct pod shapes, for a gauge.
    pub fn shapes(&self) -> usize {
        self.shapes.len()
    }
}

impl Snapshot {
    /// What would be if some nodes were marked for deletion and pods were expected on others until then; by the names
    /// of Nodes or NodeClaims. The cluster learns nothing of it.
    #[must_use]
    pub fn supposing(
        &self,
        now: Timestamp,
        leaving: Vec<String>,
        (expecting, until): (Vec<String>, Timestamp),
    ) -> Self {
        let mut model = Cluster {
            data: self.data.clone(),
            ..Cluster::default()
        };
        let nominated = |name| Event::Nominated { name, until };
        let events = expecting.into_iter().map(nominated);
        for event in events.chain([Event::MarkedForDeletion(leaving)]) {
            // Marks are never refused: what they name and is gone stays gone.
            model.apply(now, event).ok();
        }
        model.snapshot()
    }
}

#[cfg(test)]
mod tests;
