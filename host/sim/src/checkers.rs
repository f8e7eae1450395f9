//! The invariants that the world's truth can judge, as functions that return violations.
//!
//! None reads a controller's cache. "Always" may be asked at any moment, "quiesce" once everything has settled.
//! `tests/invariants.md` lists them with those that are judged elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api_server::Resource;
use apis::labels;
use jiff::{SignedDuration, Timestamp};

use crate::cluster::SimulatedCluster;
use crate::ec2::SimulatedInstance;
use crate::statistics::leaked;
use crate::world::SimulatedWorld;

/// How old an instance without a NodeClaim may get before it counts as leaked.
pub const LEAK_GRACE: SignedDuration = SignedDuration::from_secs(150);

/// How long an object that is being deleted may stay once nothing holds it any more.
pub const END_GRACE: SignedDuration = SignedDuration::from_mins(10);

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// I01: a billed instance that no NodeClaim names, for too long.
    LeakedInstance {
        /// Id of the instance.
        instance: String,
    },
    /// I02: a NodeClaim with more than one living instance.
    DoubleLaunch {
        /// Name of the NodeClaim.
        node_claim: String,
        instances: Vec<String>,
    },
    /// I15: a NodeClaim went while its instance lived.
    AliveWithoutFinalizer {
        instance: String,
        /// The node that was left.
        node: String,
    },
    /// I03: a pool holds more than its limit.
    OverLimit {
        /// Name of the NodePool.
        node_pool: String,
        /// The resource, its use and its limit.
        detail: String,
    },
    /// I23: a node whose instance is gone.
    NodeWithoutInstance { node: String },
    /// I24: a node holds pods beyond its allocatable.
    Overcommitted { node: String },
    /// I14: an object waits for its deletion when everything has settled, or for longer than it may take.
    StuckDeletion {
        /// Kind and name of the object.
        object: String,
    },
    /// I25: the API server would not take what a component of the world wrote.
    RefusedWrite {
        /// The server's words.
        words: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeakedInstance { instance } => {
                write!(f, "I01: instance {instance} has no NodeClaim")
            }
            Self::DoubleLaunch {
                node_claim,
                instances,
            } => {
                write!(
                    f,
                    "I02: NodeClaim {node_claim} has instances {}",
                    instances.join(", ")
                )
            }
            Self::AliveWithoutFinalizer { instance, node } => {
                write!(f, "I15: node {node} went while instance {instance} ran")
            }
            Self::OverLimit { node_pool, detail } => {
                write!(f, "I03: NodePool {node_pool} is over its limit: {detail}")
            }
            Self::NodeWithoutInstance { node } => write!(f, "I23: node {node} has no instance"),
            Self::Overcommitted { node } => write!(f, "I24: node {node} holds more than it can"),
            Self::StuckDeletion { object } => write!(f, "I14: {object} is stuck in deletion"),
            Self::RefusedWrite { words } => {
                write!(
                    f,
                    "I25: a write of the simulated world was refused: {words}"
                )
            }
        }
    }
}

impl SimulatedWorld {
    /// Violations of what must hold at every moment.
    pub fn check_always(&self) -> Vec<Violation> {
        let cluster = self.cluster();
        let mut violations = leaks(&cluster, LEAK_GRACE);
        violations.extend(double_launches(&cluster));
        violations.extend(over_limits(&cluster));
        violations.extend(overcommitted(&cluster));
        let refused = cluster.refused.all().into_iter();
        violations.extend(refused.map(|words| Violation::RefusedWrite { words }));
        violations
    }

    /// Violations of what must hold once everything has settled, and of what must always hold.
    pub fn check_settled(&self) -> Vec<Violation> {
        let mut violations = self.check_always();
        let cluster = self.cluster();
        violations.extend(leaks(&cluster, SignedDuration::ZERO));
        violations.extend(nodes_without_instance(&cluster));
        violations.extend(alive_without_node(&cluster));
        violations.extend(deleting(&cluster).into_iter().map(Deleting::stuck));
        violations.sort();
        violations.dedup();
        violations
    }

    /// Violations that can be told in the middle of things: what is on its way may take the time that it may take.
    pub fn check_midway(&self) -> Vec<Violation> {
        let mut violations = self.check_always();
        let cluster = self.cluster();
        let overdue = deleting(&cluster).into_iter();
        let overdue = overdue.filter(|it| it.is_overdue(cluster.clock.now()));
        violations.extend(overdue.map(Deleting::stuck));
        violations
    }
}

fn leaks(cluster: &SimulatedCluster, grace: SignedDuration) -> Vec<Violation> {
    let now = cluster.clock.now();
    let old = |instance: &SimulatedInstance| now.duration_since(instance.launched_at) >= grace;
    let leaked = leaked(cluster).into_iter().filter(old);
    leaked
        .map(|instance| Violation::LeakedInstance {
            instance: instance.id,
        })
        .collect()
}

fn double_launches(cluster: &SimulatedCluster) -> Vec<Violation> {
    let now = cluster.clock.now();
    let mut by_claim: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for instance in cluster
        .ec2
        .instances()
        .into_iter()
        .filter(|instance| instance.is_billed(now))
    {
        if let Some(claim) = instance.tags.get(labels::NODECLAIM_TAG) {
            by_claim.entry(claim.clone()).or_default().push(instance.id);
        }
    }
    let double = by_claim
        .into_iter()
        .filter(|(_, instances)| instances.len() > 1);
    double
        .map(|(node_claim, instances)| Violation::DoubleLaunch {
            node_claim,
            instances,
        })
        .collect()
}

fn over_limits(cluster: &SimulatedCluster) -> Vec<Violation> {
    let pools = cluster
        .api
        .list(&Resource::NODE_POOLS, &api_server::Selection::default());
    let mut violations = Vec::new();
    for pool in pools {
        let name = pool["metadata"]["name"].as_str().unwrap_or_default();
        for (resource, limit) in pool["spec"]["limits"].as_object().into_iter().flatten() {
            let millis = |value: &serde_json::Value| {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), ToOwned::to_owned);
                apis::quantity::parse_millis(&text).unwrap_or_default()
            };
            let of_pool = cluster.node_claims.values().filter(|claim| {
                claim.node_pool.as_deref() == Some(name) && claim.deleted_at.is_none()
            });
            let used: i64 = if resource == "nodes" {
                i64::try_from(of_pool.count()).unwrap_or(i64::MAX / 1_000) * 1_000
            } else {
                of_pool.map(|claim| claim.capacity.get(resource)).sum()
            };
            if used > millis(limit) {
                let detail = format!("{resource} {used}m of {limit}");
                violations.push(Violation::OverLimit {
                    node_pool: name.to_owned(),
                    detail,
                });
            }
        }
    }
    violations
}

fn overcommitted(cluster: &SimulatedCluster) -> Vec<Violation> {
    let over = cluster
        .nodes
        .values()
        .filter(|node| node.free.cpu < 0 || node.free.memory < 0 || node.free.pods < 0);
    over.map(|node| Violation::Overcommitted {
        node: node.name.clone(),
    })
    .collect()
}

/// Nodes of instances that this EC2 never had are somebody else's.
fn nodes_without_instance(cluster: &SimulatedCluster) -> Vec<Violation> {
    let now = cluster.clock.now();
    let is_gone = |id: &String| cluster.ec2.instance(id).is_some_and(|i| !i.is_billed(now));
    let gone = cluster
        .nodes
        .values()
        .filter(|node| node.instance_id.as_ref().is_some_and(is_gone));
    gone.map(|node| Violation::NodeWithoutInstance {
        node: node.name.clone(),
    })
    .collect()
}

/// A registered instance that runs must have its node: else a finalizer went too early.
fn alive_without_node(cluster: &SimulatedCluster) -> Vec<Violation> {
    let now = cluster.clock.now();
    let nodes: BTreeSet<&String> = cluster
        .nodes
        .values()
        .filter_map(|node| node.instance_id.as_ref())
        .collect();
    let alone = cluster.ec2.instances().into_iter().filter(|instance| {
        instance.is_billed(now) && instance.ready_at < now && !nodes.contains(&instance.id)
    });
    alone
        .map(|instance| Violation::AliveWithoutFinalizer {
            node: instance.private_dns_name(&cluster.region),
            instance: instance.id,
        })
        .collect()
}

/// A NodeClaim or Node that is being deleted.
struct Deleting {
    object: String,
    since: Timestamp,
    /// Until when pods may hold it; without one, until the last has left.
    deadline: Option<Timestamp>,
    /// Pods are on the node that no DaemonSet brings back.
    is_draining: bool,
}

impl Deleting {
    fn is_overdue(&self, now: Timestamp) -> bool {
        let is_held = match self.deadline {
            Some(deadline) => now < deadline + END_GRACE,
            None => self.is_draining,
        };
        !is_held && now.duration_since(self.since) > END_GRACE
    }

    fn stuck(self) -> Violation {
        Violation::StuckDeletion {
            object: self.object,
        }
    }
}

fn deleting(cluster: &SimulatedCluster) -> Vec<Deleting> {
    let claims = cluster.node_claims.iter();
    let deadlines: BTreeMap<&str, Option<Timestamp>> = claims
        .filter_map(|(_, claim)| Some((claim.node.as_deref()?, claim.termination_time)))
        .collect();
    let told = |object: String, since: Timestamp, node: &str| {
        let pods = cluster.nodes.get(node).into_iter().flat_map(|it| &it.pods);
        let mut pods = pods.filter_map(|key| cluster.pods.get(key));
        Deleting {
            object,
            since,
            deadline: deadlines.get(node).copied().flatten(),
            is_draining: pods.any(|pod| pod.owner.as_ref().is_none_or(|it| it.kind != "DaemonSet")),
        }
    };
    let claims = cluster.node_claims.iter().filter_map(|(name, claim)| {
        let node = claim.node.as_deref().unwrap_or_default();
        Some(told(format!("NodeClaim {name}"), claim.deleted_at?, node))
    });
    let nodes = cluster
        .nodes
        .iter()
        .filter_map(|(name, node)| Some(told(format!("Node {name}"), node.deleted_at?, name)));
    claims.chain(nodes).collect()
}
