//! The in-process controllers' view of the cluster: typed, and fed by one watch.
//!
//! Pods, nodes and NodeClaims are kept parsed, so that the server need not hold them ready to read for us; other kinds
//! as its own shared values. Nothing here writes; the controllers do, each through `api`. Answers to the informer
//! caches of kube-controller-manager.

pub(crate) mod amounts;
mod apply;
pub(crate) mod census;
mod mark;
pub(crate) mod node;
pub(crate) mod node_claim;
pub(crate) mod object_meta;
pub(crate) mod pod;
mod refused_writes;
mod relist;
pub(crate) mod shape;
pub(crate) mod timers;
pub(crate) mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_server::{ApiServer, NamespacedName, Resource};
use jiff::Timestamp;
use serde_json::Value;

use crate::clock::SimulatedClock;
use crate::ec2::SimulatedEc2;
use crate::scheduler::waiting::{News, UnschedulablePods};
use crate::workload::pace::Pace;

use census::Census;
use node::NodeRecord;
use node_claim::NodeClaimRecord;
use pod::PodRecord;
use refused_writes::RefusedWrites;
use shape::{SchedulingShape, SchedulingShapes};
use timers::Timers;
use work::{SchedulerWake, Work};

/// Kinds whose objects are kept.
pub(crate) const WATCHED: [&Resource; 14] = [
    &Resource::PODS,
    &Resource::NODES,
    &Resource::DEPLOYMENTS,
    &Resource::REPLICA_SETS,
    &Resource::STATEFUL_SETS,
    &Resource::DAEMON_SETS,
    &Resource::JOBS,
    &Resource::CRON_JOBS,
    &Resource::POD_DISRUPTION_BUDGETS,
    &Resource::PERSISTENT_VOLUME_CLAIMS,
    &Resource::PERSISTENT_VOLUMES,
    &Resource::STORAGE_CLASSES,
    &Resource::NODE_CLAIMS,
    &Resource::NAMESPACES,
];

/// The controllers' view, their to-do list and their handles.
#[derive(Debug)]
pub(crate) struct SimulatedCluster {
    pub(crate) api: ApiServer,
    pub(crate) clock: SimulatedClock,
    pub(crate) ec2: SimulatedEc2,
    pub(crate) seed: u64,
    /// How fast ReplicaSets come to their pods.
    pub(crate) pace: Option<Pace>,
    pub(crate) region: String,
    pub(crate) pods: BTreeMap<NamespacedName, PodRecord>,
    pub(crate) nodes: BTreeMap<String, NodeRecord>,
    /// By name.
    pub(crate) node_claims: BTreeMap<String, NodeClaimRecord>,
    pub(crate) shapes: SchedulingShapes,
    pub(crate) timers: Timers,
    /// When something is due in EC2 next, if there is a timer for it.
    pub(crate) ec2_due_at: Option<Timestamp>,
    /// When the scheduler looks at pods that wait.
    pub(crate) wake: SchedulerWake,
    /// Pods by the UID of their controller.
    owned: BTreeMap<String, BTreeSet<NamespacedName>>,
    objects: BTreeMap<Resource, BTreeMap<NamespacedName, Arc<Value>>>,
    /// Objects to reconcile, in the order in which kinds build on each other.
    pub(crate) dirty: BTreeSet<(Work, NamespacedName)>,
    /// Pods that wait for the scheduler.
    pub(crate) queue: BTreeSet<NamespacedName>,
    /// Pods that found no node; they wait for a change.
    pub(crate) unschedulable: UnschedulablePods,
    /// Pods that wait and are nominated to a node, by its name: others of no higher priority leave them their room.
    pub(crate) nominated: BTreeMap<String, BTreeMap<NamespacedName, Arc<SchedulingShape>>>,
    /// News that those may have waited for.
    pub(crate) news: News,
    /// Pods by shape and node, for the rules that look at other pods.
    pub(crate) census: Census,
    /// Nodes that became ready and whose pods have not been started.
    pub(crate) ready: BTreeSet<String>,
    /// Bound pods with required anti-affinity, which keep others away.
    pub(crate) anti_affine: BTreeSet<NamespacedName>,
    /// Addresses given to pods so far.
    pub(crate) pod_ips: u32,
    /// Writes that the API server would not take.
    pub(crate) refused: RefusedWrites,
}

impl SimulatedCluster {
    pub(crate) fn new(api: ApiServer, ec2: SimulatedEc2, clock: SimulatedClock, seed: u64) -> Self {
        Self {
            region: ec2.region(),
            api,
            clock,
            ec2,
            seed,
            pace: None,
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            node_claims: BTreeMap::new(),
            shapes: SchedulingShapes::default(),
            timers: Timers::default(),
            ec2_due_at: None,
            wake: SchedulerWake::Unset,
            owned: BTreeMap::new(),
            objects: BTreeMap::new(),
            dirty: BTreeSet::new(),
            queue: BTreeSet::new(),
            unschedulable: UnschedulablePods::default(),
            nominated: BTreeMap::new(),
            news: News::default(),
            census: Census::default(),
            ready: BTreeSet::new(),
            anti_affine: BTreeSet::new(),
            pod_ips: 0,
            refused: RefusedWrites::default(),
        }
    }

    /// Objects of a kind that is kept, in the order of their names.
    pub(crate) fn table<'a>(
        &'a self,
        resource: &Resource,
    ) -> impl Iterator<Item = (&'a NamespacedName, &'a Arc<Value>)> + use<'a> {
        self.objects.get(resource).into_iter().flatten()
    }

    /// One object of a kind that is kept.
    pub(crate) fn object(&self, resource: &Resource, key: &NamespacedName) -> Option<&Arc<Value>> {
        self.objects.get(resource)?.get(key)
    }

    /// Pods that a controller owns, in the order of their names.
    pub(crate) fn pods_of(&self, uid: &str) -> impl Iterator<Item = &PodRecord> {
        self.owned
            .get(uid)
            .into_iter()
            .flatten()
            .filter_map(|key| self.pods.get(key))
    }
}
