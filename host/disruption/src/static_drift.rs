//! Pools that keep replicas: drifted nodes are exchanged one for one, or go first where nothing could come first.
//!
//! No simulation, as no pod asked for these nodes. Answers to Karpenter's `disruption/staticdrift.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::NodePool;
use apis::labels;
use apis::resources::Resources;
use scheduling::instance_type::InstanceType;
use scheduling::solution::{NewClaim, admitted_by_template};
use state::Snapshot;
use state::ledger::OutcomeId;

use crate::candidate::{Candidate, TypesByPool};
use crate::command::{Cost, Manner, Proposal, TerminateFirst};
use crate::consolidation::Obstacle;
use crate::method::Method;

/// Whether a candidate is for this method.
pub fn is_eligible(candidate: &Candidate) -> bool {
    candidate.drifted_at().is_some() && candidate.node_pool.is_static()
}

/// How a static pool stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    replicas: u64,
    /// Nodes that stay.
    active: u64,
    /// Nodes that a command is about.
    pending: u64,
    /// Nodes that go.
    deleting: u64,
    /// Nodes that may still come.
    room: u64,
    /// Some of the room was taken in this loop.
    is_room_taken: bool,
    is_refilled: bool,
}

impl Standing {
    /// Counts the pool's nodes.
    pub fn of(snapshot: &Snapshot, pool: &NodePool) -> Self {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let (mut active, mut pending, mut deleting) = (0, 0, 0);
        for node in snapshot.nodes() {
            let is_mine = node
                .claim
                .as_ref()
                .is_some_and(|it| it.node_pool() == Some(name));
            if !is_mine {
                continue;
            }
            if node.is_deleted() {
                deleting += 1;
            } else if node.is_marked {
                pending += 1;
            } else {
                active += 1;
            }
        }
        let ready = pool
            .status
            .as_ref()
            .and_then(|it| apis::conditions::get(&it.conditions, "Ready"));
        Self {
            replicas: replicas(pool),
            active,
            pending,
            deleting,
            room: node_limit(pool).saturating_sub(active + pending + deleting),
            is_room_taken: false,
            is_refilled: pool.metadata.deletion_timestamp.is_none()
                && ready.is_some_and(|it| it.status == "True"),
        }
    }

    /// A pool with more nodes than replicas loses some without any command.
    pub fn check_surplus(&self) -> Result<(), Obstacle> {
        let there = self.active + self.pending;
        if there <= self.replicas {
            return Ok(());
        }
        let reason = format!("{there} nodes, {} replicas", self.replicas);
        Err(Obstacle::new(OutcomeId::NodeStaticSurplus, reason))
    }

    /// One more node of the pool is to come.
    pub fn take_room(&mut self) {
        self.room = self.room.saturating_sub(1);
        self.is_room_taken = true;
    }
}

/// How many nodes the pool keeps.
pub fn replicas(pool: &NodePool) -> u64 {
    u64::try_from(pool.spec.replicas.unwrap_or(0)).unwrap_or(0)
}

/// How many nodes the pool may have; without a limit any number.
pub fn node_limit(pool: &NodePool) -> u64 {
    let limits = pool.spec.limits.as_ref().map(Resources::from_list);
    let limit = limits
        .filter(|it| it.iter().any(|(name, _)| name == labels::RESOURCE_NODES))
        .map(|it| it.get(labels::RESOURCE_NODES) / 1000);
    limit.map_or(u64::MAX, |it| u64::try_from(it).unwrap_or(0))
}

/// The instance types of a pool, none if unknown.
pub fn types_of<'a>(types: &'a TypesByPool, pool: &str) -> &'a [Arc<InstanceType>] {
    types.get(pool).map_or(&[], |it| &**it)
}

/// Reservations that a pool bound to full ones may wait for; `None` when it may buy something else.
pub fn full_reservations(pool: &NodePool, types: &[Arc<InstanceType>]) -> Option<BTreeSet<String>> {
    let admitted = admitted_by_template(pool, types);
    let is_elsewhere = |it: &&(&InstanceType, &scheduling::instance_type::Offering)| {
        !it.1.is_reserved() || it.1.is_launchable()
    };
    if admitted.is_empty() || admitted.iter().any(|it| is_elsewhere(&it)) {
        return None;
    }
    let offered = admitted.iter().filter(|it| it.1.available);
    Some(offered.map(|it| it.1.reservation_id().to_owned()).collect())
}

/// Exchanges one node, or takes it away first where the gate is open and nothing could come before.
pub fn propose(
    candidate: &Candidate,
    types: &[Arc<InstanceType>],
    standing: &Standing,
    (method, is_gate_open): (Method, bool),
) -> Result<Proposal, Obstacle> {
    let pool = &candidate.node_pool;
    let goes_first = |why: TerminateFirst, blocked: Obstacle| {
        // Without a pool that makes up for it the node would be gone for good.
        if is_gate_open && standing.is_refilled {
            Ok(proposal(
                candidate,
                method,
                Manner::TerminateFirst(why),
                Vec::new(),
            ))
        } else {
            Err(blocked)
        }
    };
    if let Some(offered) = full_reservations(pool, types) {
        let text = format!(
            "the capacity reservations of nodepool \"{}\" are full",
            candidate.pool()
        );
        let blocked = Obstacle::new(OutcomeId::NodeReservationsFull, text);
        if !offered.contains(reservation_of(candidate).unwrap_or_default()) {
            return Err(blocked);
        }
        return goes_first(TerminateFirst::NoReservedCapacity, blocked);
    }
    if standing.room == 0 && standing.is_room_taken {
        let text = "others of its nodepool take what room its limit of nodes leaves";
        return Err(Obstacle::new(OutcomeId::NodeOutranked, text));
    }
    if standing.room == 0 {
        let text = format!("nodepool \"{}\" is at its limit of nodes", candidate.pool());
        let blocked = Obstacle::new(OutcomeId::NodeStaticAtLimit, text);
        return goes_first(TerminateFirst::StaticAtLimit, blocked);
    }
    let comes = vec![NewClaim::bare(pool, types)];
    Ok(proposal(candidate, method, Manner::ReplaceFirst, comes))
}

/// The reservation whose slot a node holds.
pub fn reservation_of(candidate: &Candidate) -> Option<&str> {
    let is_reserved = candidate.capacity_type() == labels::CAPACITY_TYPE_RESERVED;
    let id = candidate.node.label(labels::CAPACITY_RESERVATION_ID);
    (is_reserved && !id.is_empty()).then_some(id)
}

fn proposal(
    candidate: &Candidate,
    method: Method,
    manner: Manner,
    replacements: Vec<NewClaim>,
) -> Proposal {
    Proposal {
        method,
        manner,
        rows: Vec::new(),
        after: Cost::of_claims(&replacements),
        replacements,
        destinations: Vec::new(),
        before: candidate.cost,
    }
}
