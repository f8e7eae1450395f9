//! Which nodes may be disrupted at all, and the one reason of each that may not.
//!
//! Answers to Karpenter's `disruption/types.go` (`NewCandidate`) and `state/statenode.go`
//! (`ValidateNodeDisruptable`). Checks the rules that hold for every method, not those of one.

mod list_price;
mod pod_block;

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::{CapacityType, NodePool, labels, resources::Resources};
use hooks::columns::saturated;
use jiff::Timestamp;
use planning::places::nodes_awaiting_pods;
use scheduling::instance_type::InstanceType;
use scheduling::pod::Pod;
use state::ledger::OutcomeId;
use state::{Snapshot, StateNode};

use crate::method::DisruptionClass;
use crate::obstacle::Obstacle;
pub(crate) use list_price::types_of;
pub use list_price::{list_price, list_price_by};
pub use planning::provisioning::TypesByPool;
use pod_block::pod_block;

/// A node that may be disrupted.
#[derive(Debug, Clone)]
pub struct Candidate {
    name: String,
    claim: String,
    pool: String,
    pub node: Arc<StateNode>,
    /// NodePool that owns the node.
    pub node_pool: Arc<NodePool>,
    /// Its instance type, while the pool still knows it.
    pub instance_type: Option<Arc<InstanceType>>,
    /// List price, USD an hour, while the pool still knows it.
    pub price_per_hour: Option<f64>,
    /// Pods that would need another node.
    pub reschedulable: Vec<Arc<Pod>>,
    /// One plus the positive eviction costs of `reschedulable`.
    pub reschedule_cost: f64,
    /// Eviction costs of all pods, weighed by the lifetime left. What policies see as the cost of disruption is
    /// `reschedule_cost`.
    pub cost_for_life_left: f64,
    /// Pods that carry do-not-disrupt or are held by a PodDisruptionBudget.
    pub blocked_pods: u32,
    /// The first of them, which excludes the node from graceful methods.
    pub pod_block: Option<Obstacle>,
    /// Requests of all bound pods.
    pub requests: Resources,
    /// Number of bound pods.
    pub pods: u32,
}

/// A node that may not be disrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// Name of the Node, or of the claim without one.
    pub name: String,
    /// Name of the Node, to put the event on.
    pub node: Option<String>,
    /// Name of the claim, to put the event on.
    pub claim: Option<String>,
    /// NodePool, where it belongs to one.
    pub pool: Option<String>,
    /// Rule that keeps the node, and why.
    pub obstacle: Obstacle,
}

impl Blocked {
    /// A node that is kept, named by its Node, its claim and its pool.
    pub(crate) fn new(node: &StateNode, obstacle: Obstacle) -> Self {
        Self {
            name: node.node_name().unwrap_or_else(|| node.name()).to_owned(),
            node: node.node_name().map(str::to_owned),
            claim: node.claim_name().map(str::to_owned),
            pool: node.node_pool().map(str::to_owned),
            obstacle,
        }
    }

    /// For the event `DisruptionBlocked`; `None` where none is due: of what needs no words nobody is told.
    pub fn event_message(&self) -> Option<&str> {
        let message = self.obstacle.message.as_str();
        (!message.is_empty()).then_some(message)
    }
}

/// Every tracked node, sorted into those that may be disrupted and those that may not.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    /// In order of node name.
    pub candidates: Vec<Candidate>,
    /// In order of their key in the model.
    pub blocked: Vec<Blocked>,
}

impl Candidates {
    /// Looks at every node. `queued` holds the claims that a command is about already.
    pub fn find(
        snapshot: &Snapshot,
        types: &TypesByPool,
        queued: &BTreeSet<String>,
        now: Timestamp,
    ) -> Self {
        let mut found = Self::default();
        let awaiting = nodes_awaiting_pods(snapshot, now);
        for node in snapshot.nodes() {
            let is_open = check_node(queued, node, now);
            let candidate = is_open.and_then(|()| Candidate::of(snapshot, types, node, now));
            match candidate {
                Ok(_) if awaiting.contains(&node.node_ref()) => {
                    found.blocked.push(Blocked::new(node, awaits_pods()));
                }
                Ok(candidate) => found.candidates.push(candidate),
                Err(obstacle) => found.blocked.push(Blocked::new(node, obstacle)),
            }
        }
        found.candidates.sort_by(|a, b| a.name().cmp(b.name()));
        found
    }
}

/// The rules about what is under way on the node. Those about its pool are asked when the candidate is made, and those
/// about its pods are on the candidate, as one class waives them.
fn check_node(queued: &BTreeSet<String>, node: &StateNode, now: Timestamp) -> Result<(), Obstacle> {
    let blocked = |outcome, message: &str| Err(Obstacle::new(outcome, message));
    let claim = node.claim().ok_or_else(not_managed)?;
    if queued.contains(&claim.name) {
        return Err(OutcomeId::NodeInQueue.into());
    }
    if node.node().is_none() {
        return Err(missing());
    }
    if claim.conditions.rebooting_at.is_some() {
        return blocked(OutcomeId::NodeRebooting, "Node is rebooting");
    }
    if node.is_marked_for_deletion() {
        return blocked(
            OutcomeId::NodeMarkedForDeletion,
            "Node is deleting or marked for deletion",
        );
    }
    if !node.is_initialized() {
        return blocked(OutcomeId::NodeNotInitialized, "Node isn't initialized");
    }
    if node.is_nominated(now) {
        return Err(awaits_pods());
    }
    if labels::has_do_not_disrupt(node.annotations()) {
        return blocked(
            OutcomeId::NodeDoNotDisrupt,
            "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation",
        );
    }
    Ok(())
}

fn not_managed() -> Obstacle {
    OutcomeId::NodeNotManaged.into()
}

fn missing() -> Obstacle {
    let message = "NodeClaim does not have an associated node";
    Obstacle::new(OutcomeId::NodeMissing, message)
}

fn awaits_pods() -> Obstacle {
    let message = "Node is nominated for a pending pod";
    Obstacle::new(OutcomeId::NodeNominated, message)
}

/// The NodePool of a node, which could make another in its place.
struct OwningPool<'a> {
    name: &'a str,
    node_pool: &'a Arc<NodePool>,
    types: &'a [Arc<InstanceType>],
}

/// The node's NodePool, or what of it is missing.
fn owning_pool<'a>(
    snapshot: &'a Snapshot,
    types: &'a TypesByPool,
    node: &'a StateNode,
) -> Result<OwningPool<'a>, Obstacle> {
    let Some(name) = node.node_pool() else {
        let message = "Node doesn't have required label \"karpenter.sh/nodepool\"";
        return Err(Obstacle::new(OutcomeId::NodeWithoutNodePool, message));
    };
    let there = snapshot.node_pool(name);
    let Some(node_pool) = there.filter(|it| it.metadata.deletion_timestamp.is_none()) else {
        let message = format!("NodePool not found (NodePool={name})");
        return Err(Obstacle::new(OutcomeId::NodePoolNotFound, message));
    };
    let types = types_of(types, name);
    if types.is_empty() {
        let message = format!("NodePool has no known instance types (NodePool={name})");
        return Err(Obstacle::new(OutcomeId::NodePoolWithoutTypes, message));
    }
    Ok(OwningPool {
        name,
        node_pool,
        types,
    })
}

impl Candidate {
    /// The candidate that a node would be, or what of its Node, claim or pool is missing.
    pub(crate) fn of(
        snapshot: &Snapshot,
        types: &TypesByPool,
        node: &Arc<StateNode>,
        now: Timestamp,
    ) -> Result<Self, Obstacle> {
        let claim = node.claim_name().ok_or_else(not_managed)?;
        let name = node.node_name().ok_or_else(missing)?;
        let pool = owning_pool(snapshot, types, node)?;
        let bound = snapshot.bound(node);
        let instance_type = pool
            .types
            .iter()
            .find(|it| node.instance_type() == Some(&it.name))
            .cloned();
        let price_per_hour = instance_type
            .as_ref()
            .and_then(|it| list_price_by(it, node));
        let reschedulable: Vec<Arc<Pod>> = bound
            .pods()
            .filter(|pod| pod.is_reschedulable())
            .cloned()
            .collect();
        let positive: f64 = reschedulable
            .iter()
            .map(|pod| pod.eviction_cost().max(0.0))
            .sum();
        let evictions: f64 = bound.pods().map(|pod| pod.eviction_cost()).sum();
        let mut blocks = bound.pods().filter_map(|pod| pod_block(snapshot, pod, now));
        let pod_block = blocks.next();
        let blocked_pods = u32::from(pod_block.is_some()) + saturated(blocks.count());
        Ok(Self {
            name: name.to_owned(),
            claim: claim.to_owned(),
            pool: pool.name.to_owned(),
            node_pool: Arc::clone(pool.node_pool),
            instance_type,
            price_per_hour,
            reschedulable,
            reschedule_cost: 1.0 + positive,
            cost_for_life_left: evictions * lifetime_remaining(node, now),
            blocked_pods,
            pod_block,
            requests: bound.requests().clone(),
            pods: saturated(bound.len()),
            node: Arc::clone(node),
        })
    }

    /// Name of the Node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the claim.
    pub fn claim(&self) -> &str {
        &self.claim
    }

    /// Name of the NodePool.
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Name of the instance type.
    pub(crate) fn instance_type_name(&self) -> Option<&str> {
        self.node.instance_type()
    }

    /// Zone, where the node says in which it is.
    pub fn zone(&self) -> Option<&str> {
        self.node.zone()
    }

    /// Capacity type, where its word is known.
    pub fn capacity_type(&self) -> Option<CapacityType> {
        self.node.capacity_type()
    }

    /// Whether nothing on it is worth moving.
    pub fn is_empty(&self) -> bool {
        self.reschedule_cost <= 1.0
    }

    /// Obstacle that keeps the node from methods of a class.
    pub fn block(&self, class: DisruptionClass) -> Option<&Obstacle> {
        let is_bounded = self
            .node
            .claim()
            .is_some_and(|it| it.termination_grace_period.is_some());
        match class {
            DisruptionClass::Eventual | DisruptionClass::Repair if is_bounded => None,
            DisruptionClass::Eventual | DisruptionClass::Repair | DisruptionClass::Graceful => {
                self.pod_block.as_ref()
            }
        }
    }

    /// When the claim was made.
    pub fn created_at(&self) -> Option<Timestamp> {
        self.node.claim()?.created_at
    }

    /// When the claim was found drifted.
    pub fn drifted_at(&self) -> Option<Timestamp> {
        self.node.claim()?.conditions.drifted_at
    }

    /// When the claim is too old to go on.
    pub fn expires_at(&self) -> Option<Timestamp> {
        let claim = self.node.claim()?;
        let life = claim.expire_after?.to_signed_duration();
        self.created_at()?.checked_add(life).ok()
    }

    /// Whether `consolidateAfter` has passed.
    pub fn is_consolidatable(&self) -> bool {
        self.node.is_consolidatable()
    }
}

/// Share of the node's life that is left: an old node is cheaper to disturb.
pub(crate) fn lifetime_remaining(node: &StateNode, now: Timestamp) -> f64 {
    let Some(claim) = node.claim() else {
        return 1.0;
    };
    match (claim.expire_after, claim.created_at) {
        (Some(life), Some(created)) if life.as_nanos() > 0 => {
            let total = life.to_signed_duration().as_secs_f64();
            let age = now.duration_since(created).as_secs_f64();
            ((total - age) / total).clamp(0.0, 1.0)
        }
        (Some(_) | None, _) => 1.0,
    }
}
