//! Tally of one autoscaler, counted from the objects that tell of it: the same for Karpenter and for Mortise.
//!
//! Knows no prices: it keeps how long nodes of each kind were there, and the report makes USD of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use apis::{ObjectKey, labels, quantity};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::gathered::ToldObject;
use crate::kinds::ReadKind;
use crate::object::{controller_of, is_deleting, key_of, label};

/// Watches of several kinds are in no order among each other: the taint of a node may be told after the deletion of a
/// pod that it announced, by as much.
const OUT_OF_ORDER: SignedDuration = SignedDuration::from_secs(10);

/// Offering on which an instance was bought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct BoughtOffering {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
}

impl fmt::Display for BoughtOffering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            instance_type,
            zone,
            capacity_type,
        } = self;
        write!(f, "{instance_type} {capacity_type} {zone}")
    }
}

/// Event that is worth a line while it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    Launched {
        node_pool: String,
        bought: BoughtOffering,
    },
    Ended {
        node_pool: String,
        bought: BoughtOffering,
    },
}

/// Whose nodes, and which.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolStock {
    pub(crate) node_pool: String,
    pub(crate) bought: BoughtOffering,
}

/// Counts of a NodePool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PoolHappenings {
    pub(crate) launches: u64,
    pub(crate) terminations: u64,
    pub(crate) evictions: u64,
}

#[derive(Debug, Clone)]
struct CountedClaim {
    stock: PoolStock,
    cpu_millis: i64,
    is_launched: bool,
    is_deleting: bool,
    node: Option<String>,
}

#[derive(Debug)]
struct CountedNode {
    node_pool: Option<String>,
    is_disrupted: bool,
}

#[derive(Debug)]
struct PodFacts {
    node: Option<String>,
    /// Neither a daemon nor a pod of the kubelet's own, which drains leave alone.
    is_drained: bool,
    is_finished: bool,
    is_deleting: bool,
    waits: bool,
}

/// A pod whose deletion came before anything was known of its node's.
#[derive(Debug)]
struct Undecided {
    node: String,
    at: Timestamp,
}

/// Tally of nodes, pods and what happened to them.
#[derive(Debug)]
pub struct FleetTally {
    since: Timestamp,
    at: Timestamp,
    has_begun: bool,
    claims: BTreeMap<String, CountedClaim>,
    nodes: BTreeMap<String, CountedNode>,
    pods: BTreeMap<ObjectKey, PodFacts>,
    waiting: usize,
    undecided: Vec<Undecided>,
    pub(crate) pools: BTreeMap<String, PoolHappenings>,
    pub(crate) node_seconds: BTreeMap<PoolStock, f64>,
    pub(crate) pending_pod_seconds: f64,
}

impl FleetTally {
    /// Nothing yet; what is told before `begin` is what there was at the start.
    pub fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            at: now,
            has_begun: false,
            claims: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            waiting: 0,
            undecided: Vec::new(),
            pools: BTreeMap::new(),
            node_seconds: BTreeMap::new(),
            pending_pod_seconds: 0.0,
        }
    }

    /// From now on it counts.
    pub fn begin(&mut self, now: Timestamp) {
        (self.since, self.at, self.has_begun) = (now, now, true);
    }

    /// Lets time pass.
    pub fn advance(&mut self, now: Timestamp) {
        if !self.has_begun || now <= self.at {
            return;
        }
        let seconds = now.duration_since(self.at).as_secs_f64();
        self.at = now;
        for claim in self.claims.values().filter(|it| it.is_launched) {
            *self.node_seconds.entry(claim.stock.clone()).or_default() += seconds;
        }
        self.pending_pod_seconds += self.waiting as f64 * seconds;
        self.undecided
            .retain(|it| now.duration_since(it.at) <= OUT_OF_ORDER);
    }

    /// Takes in what was told, and answers what is news.
    pub fn apply(&mut self, told: ToldObject<'_>, now: Timestamp) -> Option<Happening> {
        self.advance(now);
        let ToldObject {
            kind,
            object,
            is_gone,
        } = told;
        match kind {
            ReadKind::NodeClaims => self.apply_claim(object, is_gone),
            ReadKind::Nodes => {
                self.apply_node(object, is_gone);
                None
            }
            ReadKind::Pods => {
                self.apply_pod(object, is_gone);
                None
            }
            ReadKind::Namespaces
            | ReadKind::PriorityClasses
            | ReadKind::StorageClasses
            | ReadKind::PersistentVolumes
            | ReadKind::PersistentVolumeClaims
            | ReadKind::PodDisruptionBudgets
            | ReadKind::Ec2NodeClasses
            | ReadKind::NodePools
            | ReadKind::NodeOverlays
            | ReadKind::CsiNodes
            | ReadKind::ReplicaSets
            | ReadKind::StatefulSets
            | ReadKind::DaemonSets
            | ReadKind::Jobs => None,
        }
    }

    /// For how long it has counted.
    pub fn seconds(&self) -> f64 {
        self.at.duration_since(self.since).as_secs_f64()
    }

    /// Since when it counts.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Pods that wait for a node.
    pub fn pending_pods(&self) -> usize {
        self.waiting
    }

    /// Nodes that nobody launches by claims.
    pub(crate) fn bare_nodes(&self) -> usize {
        let named = self.claims.values().filter_map(|it| it.node.as_deref());
        let claimed: BTreeSet<&str> = named.collect();
        let bare = self
            .nodes
            .iter()
            .filter(|(name, node)| node.node_pool.is_none() && !claimed.contains(name.as_str()));
        bare.count()
    }

    /// What there is now: each launched node with its virtual CPUs.
    pub(crate) fn stock(&self) -> impl Iterator<Item = (&PoolStock, f64)> {
        let launched = self.claims.values().filter(|it| it.is_launched);
        launched.map(|it| (&it.stock, it.cpu_millis as f64 / 1_000.0))
    }

    fn counts(&mut self, node_pool: &str) -> &mut PoolHappenings {
        self.pools.entry(node_pool.to_owned()).or_default()
    }

    fn apply_claim(&mut self, object: &Value, is_gone: bool) -> Option<Happening> {
        let name = key_of(object).name;
        let old = self.claims.remove(&name);
        let was_launched = old.as_ref().is_some_and(|it| it.is_launched);
        if is_gone {
            let PoolStock { node_pool, bought } = old.filter(|it| it.is_launched)?.stock;
            if self.has_begun {
                self.counts(&node_pool).terminations += 1;
            }
            return Some(Happening::Ended { node_pool, bought });
        }
        let claim = claim(object);
        let is_news = claim.is_launched && !was_launched;
        let PoolStock { node_pool, bought } = claim.stock.clone();
        if let Some(node) = claim.node.as_deref().filter(|_| claim.is_deleting) {
            self.decide(node, Some(&node_pool));
        }
        self.claims.insert(name, claim);
        if !is_news {
            return None;
        }
        if self.has_begun {
            self.counts(&node_pool).launches += 1;
        }
        Some(Happening::Launched { node_pool, bought })
    }

    fn apply_node(&mut self, object: &Value, is_gone: bool) {
        let name = key_of(object).name;
        if is_gone {
            self.nodes.remove(&name);
            return;
        }
        let taints = object["spec"]["taints"].as_array().into_iter().flatten();
        let mut keys = taints.map(|taint| &taint["key"]);
        let node = CountedNode {
            node_pool: label(object, labels::NODEPOOL).map(str::to_owned),
            is_disrupted: is_deleting(object)
                || keys.any(|key| *key == *labels::DISRUPTED_TAINT_KEY),
        };
        if node.is_disrupted {
            self.decide(&name, node.node_pool.as_deref());
        }
        self.nodes.insert(name, node);
    }

    fn apply_pod(&mut self, object: &Value, is_gone: bool) {
        let key = key_of(object);
        let old = self.pods.remove(&key);
        let new = (!is_gone).then(|| pod(object));
        let counted = |it: &Option<PodFacts>| usize::from(it.as_ref().is_some_and(|it| it.waits));
        self.waiting = self.waiting + counted(&new) - counted(&old);
        let leaves = new.as_ref().is_none_or(|it| it.is_deleting);
        if let Some(old) =
            old.filter(|it| leaves && it.is_drained && !it.is_finished && !it.is_deleting)
            && let Some(node) = old.node
        {
            self.note_leaving(node);
        }
        if let Some(new) = new {
            self.pods.insert(key, new);
        }
    }

    /// A pod leaves its node: evicted, if the node is drained.
    fn note_leaving(&mut self, node: String) {
        if !self.has_begun {
            return;
        }
        let claim = self
            .claims
            .values()
            .find(|it| it.node.as_ref() == Some(&node));
        let is_deleting = claim.is_some_and(|it| it.is_deleting);
        let facts = self.nodes.get(&node);
        let is_drained = is_deleting || facts.is_some_and(|it| it.is_disrupted);
        let of_claim = claim.map(|it| it.stock.node_pool.clone());
        let node_pool = facts.and_then(|it| it.node_pool.clone()).or(of_claim);
        match node_pool {
            Some(node_pool) if is_drained => self.counts(&node_pool).evictions += 1,
            Some(_) => self.undecided.push(Undecided { node, at: self.at }),
            None => {}
        }
    }

    /// A node is drained: pods that left it just now were evicted.
    fn decide(&mut self, node: &str, node_pool: Option<&str>) {
        let before = self.undecided.len();
        self.undecided.retain(|it| it.node != node);
        let evicted = before - self.undecided.len();
        if let Some(node_pool) = node_pool.filter(|_| evicted > 0) {
            self.counts(node_pool).evictions += u64::try_from(evicted).unwrap_or(u64::MAX);
        }
    }
}

fn claim(object: &Value) -> CountedClaim {
    let told = |key: &str| label(object, key).unwrap_or_default().to_owned();
    let status = &object["status"];
    let text = |field: &str| status[field].as_str().filter(|it| !it.is_empty());
    let cpu = status["capacity"]["cpu"].as_str().unwrap_or_default();
    CountedClaim {
        stock: PoolStock {
            node_pool: told(labels::NODEPOOL),
            bought: BoughtOffering {
                instance_type: told(labels::INSTANCE_TYPE),
                zone: told(labels::TOPOLOGY_ZONE),
                capacity_type: told(labels::CAPACITY_TYPE),
            },
        },
        cpu_millis: quantity::parse_millis(cpu).unwrap_or_default(),
        is_launched: text("providerID").is_some(),
        is_deleting: is_deleting(object),
        node: text("nodeName").map(str::to_owned),
    }
}

fn pod(object: &Value) -> PodFacts {
    let node = object["spec"]["nodeName"]
        .as_str()
        .filter(|it| !it.is_empty());
    let owner = controller_of(object).and_then(|it| it["kind"].as_str());
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let is_finished = matches!(phase, "Succeeded" | "Failed");
    let gates = object["spec"]["schedulingGates"].as_array();
    let is_drained = !matches!(owner, Some("DaemonSet" | "Node"));
    PodFacts {
        node: node.map(str::to_owned),
        is_drained,
        is_finished,
        is_deleting: is_deleting(object),
        waits: node.is_none()
            && is_drained
            && !is_finished
            && !is_deleting(object)
            && gates.is_none_or(Vec::is_empty),
    }
}

#[cfg(test)]
mod tests;
