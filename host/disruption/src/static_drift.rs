//! Pools that keep replicas: drifted nodes are exchanged one for one, or go first where nothing could come first.
//!
//! No simulation, as no pod asked for these nodes. Answers to Karpenter's `disruption/staticdrift.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodePool;
use apis::conditions::Conditioned as _;
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::solution::{NewClaim, admitted_by_template};
use state::Snapshot;
use state::ledger::OutcomeId;

use crate::candidate::{Candidate, types_of};
use crate::command::{Command, Execution, TerminateFirst};
use crate::method::Method;
use crate::obstacle::Obstacle;
use crate::renewal::{self, Renewal, RenewalOrder};
use crate::scan::Scan;

const METHOD: Method = Method::StaticDrift;
/// Nodes that are exchanged in one loop at most.
const NODES_AT_ONCE: usize = 100;

/// Whether a candidate is for this method.
fn is_eligible(candidate: &Candidate) -> bool {
    candidate.drifted_at().is_some() && candidate.node_pool.is_static()
}

/// Drifted nodes of static pools, each with what comes in its place, as far as budgets and limits allow.
pub(crate) fn commands(scan: &mut Scan<'_, '_>) -> Vec<Command> {
    let drifted = renewal::order(&scan.scene.candidates, is_eligible);
    let open = scan.retain_unblocked(drifted.clone(), METHOD);
    scan.count(METHOD, open.len());
    let mut counts = BTreeMap::new();
    let open = retain_without_surplus(scan, open, &mut counts);
    let open = renewal::retain_pools_without_backoff(scan, open);
    let commands = exchange_each(scan, &open, counts);
    scan.keep_of_drift(&drifted);
    commands
}

/// Leaves out nodes of pools that have more nodes than replicas.
fn retain_without_surplus<'s>(
    scan: &mut Scan<'s, '_>,
    mut candidates: Vec<&'s Candidate>,
    counts_by_pool: &mut BTreeMap<&'s str, NodeCounts>,
) -> Vec<&'s Candidate> {
    let snapshot = &scan.scene.input.snapshot;
    candidates.retain(|candidate| {
        let counts = counts_by_pool
            .entry(candidate.pool())
            .or_insert_with(|| NodeCounts::of(snapshot, &candidate.node_pool));
        let surplus = counts.check_surplus();
        surplus
            .map_err(|obstacle| scan.note(candidate, obstacle))
            .is_ok()
    });
    candidates
}

/// One by one: what is refused takes neither budget nor headroom from the next.
fn exchange_each<'s>(
    scan: &mut Scan<'s, '_>,
    candidates: &[&'s Candidate],
    mut counts_by_pool: BTreeMap<&'s str, NodeCounts>,
) -> Vec<Command> {
    let scene = scan.scene;
    let input = &scene.input;
    let reason = METHOD.budget_reason();
    let order = RenewalOrder::of_drift(input.gates);
    let mut left = scene.budgets.remaining.clone();
    let mut commands = Vec::new();
    for (position, &candidate) in candidates.iter().enumerate() {
        if commands.len() == NODES_AT_ONCE {
            break;
        }
        if scene.interrupt.is_tripped() {
            scan.note_cut_off(&candidates[position..]);
            break;
        }
        let pool = candidate.pool();
        if left.of(pool, reason) == 0 {
            scan.note_out_of_budget(candidate, METHOD);
            continue;
        }
        let counts = counts_by_pool
            .entry(pool)
            .or_insert_with(|| NodeCounts::of(&input.snapshot, &candidate.node_pool));
        let types = types_of(&input.types, pool);
        let renewal = match renew(candidate, types, counts, order) {
            Ok(renewal) => renewal,
            Err(obstacle) => {
                scan.note(candidate, obstacle);
                continue;
            }
        };
        let proposal = renewal.proposal(candidate, scan.cost(candidate), METHOD);
        for approved in scan.ask_verdicts(vec![proposal]) {
            left.take(pool, reason);
            if !approved.proposal.replacements().is_empty() {
                counts.take_headroom();
            }
            commands.push(scan.command(approved));
        }
    }
    commands
}

/// The nodes of a static pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeCounts {
    replicas: u64,
    /// Nodes that no command is about and that are not being deleted.
    active: u64,
    /// Nodes that a command is about.
    pending: u64,
    /// Nodes that are being deleted.
    deleting: u64,
    /// Nodes that may still come.
    headroom: u64,
    /// Some of the headroom was taken in this loop.
    is_headroom_taken: bool,
    /// The pool makes up for nodes that go.
    is_refilled: bool,
}

impl NodeCounts {
    /// Counts the pool's nodes.
    pub(crate) fn of(snapshot: &Snapshot, pool: &NodePool) -> Self {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let (mut active, mut pending, mut deleting) = (0, 0, 0);
        for node in snapshot.nodes() {
            let is_mine = node.claim().is_some_and(|it| it.node_pool() == Some(name));
            if !is_mine {
                continue;
            }
            if node.is_deleted() {
                deleting += 1;
            } else if node.is_marked() {
                pending += 1;
            } else {
                active += 1;
            }
        }
        let nodes_max = pool.nodes_max().unwrap_or(u64::MAX);
        Self {
            replicas: pool.replicas_wanted(),
            active,
            pending,
            deleting,
            headroom: nodes_max.saturating_sub(active + pending + deleting),
            is_headroom_taken: false,
            is_refilled: pool.metadata.deletion_timestamp.is_none() && pool.is_ready(),
        }
    }

    /// A pool with more nodes than replicas loses some without any command.
    pub(crate) fn check_surplus(&self) -> Result<(), Obstacle> {
        let there = self.active + self.pending;
        if there <= self.replicas {
            return Ok(());
        }
        let reason = format!("{there} nodes, {} replicas", self.replicas);
        Err(Obstacle::new(OutcomeId::NodeStaticSurplus, reason))
    }

    /// One more node of the pool is to come.
    pub(crate) fn take_headroom(&mut self) {
        self.headroom = self.headroom.saturating_sub(1);
        self.is_headroom_taken = true;
    }
}

/// Reservations that a pool bound to full ones may wait for; `None` when it may buy something else.
fn full_reservations(pool: &NodePool, types: &[Arc<InstanceType>]) -> Option<BTreeSet<String>> {
    let admitted = admitted_by_template(pool, types);
    let offerings = || admitted.iter().map(|(_, offering)| *offering);
    let is_elsewhere = |it: &Offering| !it.is_reserved() || it.is_launchable();
    if admitted.is_empty() || offerings().any(is_elsewhere) {
        return None;
    }
    let offered = offerings().filter(|it| it.is_available());
    Some(
        offered
            .filter_map(|it| Some(it.reservation_id()?.to_owned()))
            .collect(),
    )
}

/// Exchanges one node, or takes it away first where that is allowed and nothing could come before.
pub(crate) fn renew(
    candidate: &Candidate,
    types: &[Arc<InstanceType>],
    counts: &NodeCounts,
    order: RenewalOrder,
) -> Result<Renewal, Obstacle> {
    let pool = &candidate.node_pool;
    let goes_first = |why: TerminateFirst, blocked: Obstacle| {
        // Without a pool that makes up for it the node would be gone for good.
        if order.may_terminate_first() && counts.is_refilled {
            Ok(renewal(Execution::TerminateFirst(why)))
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
        let held = candidate.node.reservation_id();
        if !held.is_some_and(|it| offered.contains(it)) {
            return Err(blocked);
        }
        return goes_first(TerminateFirst::NoReservedCapacity, blocked);
    }
    if counts.headroom == 0 && counts.is_headroom_taken {
        let text = "others of its nodepool take what room its limit of nodes leaves";
        return Err(Obstacle::new(OutcomeId::NodeOutranked, text));
    }
    if counts.headroom == 0 {
        let text = format!("nodepool \"{}\" is at its limit of nodes", candidate.pool());
        let blocked = Obstacle::new(OutcomeId::NodeStaticAtLimit, text);
        return goes_first(TerminateFirst::StaticAtLimit, blocked);
    }
    let comes = NewClaim::of_template(pool, types);
    if comes.best.instance_type.is_empty() {
        // Nothing could come, at no price that could be told.
        let text = "no instance type suits the requirements of its nodepool";
        return Err(Obstacle::new(OutcomeId::NodePoolWithoutTypes, text));
    }
    Ok(renewal(Execution::ReplaceFirst(vec![comes])))
}

fn renewal(execution: Execution) -> Renewal {
    Renewal {
        execution,
        destinations: Vec::new(),
    }
}
