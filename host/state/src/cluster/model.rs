//! What the model holds, each collection shared with the snapshots taken of it.
//!
//! Values alone: how objects change them is for the files of their kinds, what is read from them for `snapshot.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{CapacityBuffer, Ec2NodeClass, NodeOverlay, NodePool};
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey, PodShape};

use super::seen_node::SeenNode;
use crate::coming::owned::Owned;
use crate::devices::DeviceWorld;
use crate::facts::NodeClassFacts;
use crate::pod_disruption_budget::Pdbs;
use crate::state_node::{BoundPods, StateNode};
use crate::volumes::Volumes;
use crate::workloads::Workloads;

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
    pub(super) seen_nodes: Arc<BTreeMap<String, SeenNode>>,
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
