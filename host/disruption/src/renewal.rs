//! How one node that must go is renewed, whatever that costs: shared by drift, expiry and repair.
//!
//! What comes in its place is there first, save where nothing could come before the node has gone. Answers to the
//! common part of Karpenter's `disruption/drift.go`, `disruption/repair.go` and, for nodes that hold a slot of a full
//! reservation, `terminatefirst.go`.

use apis::NodeRef;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Command, Cost, Execution, Proposal, TerminateFirst};
use crate::history::ReplacementPause;
use crate::input::Gates;
use crate::method::Method;
use crate::obstacle::Obstacle;
use crate::scan::Scan;
use crate::scene::Scene;
use crate::simulation::{Purpose, Unsound};

/// What goes and comes in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenewalOrder {
    /// The replacement is always there first.
    ReplaceFirst,
    /// The node may go first where nothing could come before.
    MayTerminateFirst,
}

impl RenewalOrder {
    /// For nodes that drifted or are about to expire.
    pub(crate) const fn of_drift(gates: Gates) -> Self {
        Self::by_gate(gates.terminate_first_drift)
    }

    /// For sick nodes.
    pub(crate) const fn of_repair(gates: Gates) -> Self {
        Self::by_gate(gates.terminate_first_repair)
    }

    const fn by_gate(is_open: bool) -> Self {
        if is_open {
            Self::MayTerminateFirst
        } else {
            Self::ReplaceFirst
        }
    }

    /// Whether the node may go first.
    pub(crate) fn may_terminate_first(self) -> bool {
        self == Self::MayTerminateFirst
    }
}

/// How a node is renewed.
pub(crate) struct Renewal {
    pub(crate) execution: Execution,
    /// Existing nodes that take pods over.
    pub(crate) destinations: Vec<NodeRef>,
}

impl Renewal {
    /// The move that it comes to.
    pub(crate) fn proposal(
        self,
        candidate: &Candidate,
        cost: Cost,
        method: Method,
    ) -> Proposal<'_> {
        let after = match &self.execution {
            Execution::ReplaceFirst(comes) => Cost::of_claims(comes),
            Execution::TerminateFirst(_) => Cost::default(),
            // The node keeps its price.
            Execution::Reboot => cost,
        };
        Proposal {
            method,
            execution: self.execution,
            candidates: vec![candidate],
            destinations: self.destinations,
            before: cost,
            after,
        }
    }
}

/// Drifted nodes in the order in which they are tried: those without pods to move first, then by time of drift.
pub(crate) fn order<'s>(
    candidates: &'s [Candidate],
    is_eligible: fn(&Candidate) -> bool,
) -> Vec<&'s Candidate> {
    let mut eligible: Vec<&Candidate> = candidates.iter().filter(|it| is_eligible(it)).collect();
    eligible.sort_by(|a, b| {
        let key = |it: &'s Candidate| (!it.reschedulable.is_empty(), it.drifted_at(), it.name());
        key(a).cmp(&key(b))
    });
    eligible
}

/// Leaves out nodes of pools whose last replacement did not come.
pub(crate) fn retain_pools_without_backoff<'s>(
    scan: &mut Scan<'s, '_>,
    mut candidates: Vec<&'s Candidate>,
) -> Vec<&'s Candidate> {
    let input = &scan.scene.input;
    candidates.retain(|candidate| {
        let pool = candidate.pool();
        let Some(pause) = input.history.pool_pause(pool, input.options.now) else {
            return true;
        };
        let ReplacementPause { until, failures } = pause;
        let reason = format!("nodepool \"{pool}\": {failures} in a row, next try {until}");
        scan.note(
            candidate,
            Obstacle::new(OutcomeId::NodeReplacementFailed, reason),
        );
        false
    });
    candidates
}

/// The first of the candidates that can be renewed and that its policy lets go.
pub(crate) fn first<'s>(
    scan: &mut Scan<'s, '_>,
    candidates: &[&'s Candidate],
    method: Method,
) -> Option<Command> {
    let scene = scan.scene;
    let order = RenewalOrder::of_drift(scene.input.gates);
    for (position, &candidate) in candidates.iter().enumerate() {
        if scene.interrupt.is_tripped() {
            scan.note_cut_off(&candidates[position..]);
            break;
        }
        if scan.note_if_held(candidate) {
            continue;
        }
        let cost = scan.weigh().costs.of(candidate);
        match renew(scene, candidate, Purpose::Renewal, order) {
            Ok(renewal) => {
                let proposal = renewal.proposal(candidate, cost, method);
                if let Some(approved) = scan.ask_verdicts(vec![proposal]).pop() {
                    return Some(scan.command(approved));
                }
            }
            Err(obstacle) => scan.note(candidate, obstacle),
        }
    }
    None
}

/// Replaces one node, by as many as it takes. Where its pods find no place and the node holds a slot of a reservation,
/// the cluster in which that slot is free is tried if the node may go first.
pub(crate) fn renew(
    scene: &Scene<'_>,
    candidate: &Candidate,
    purpose: Purpose,
    order: RenewalOrder,
) -> Result<Renewal, Obstacle> {
    let removed = [candidate];
    let unsound = match scene.simulator().without(&removed, purpose) {
        Ok(simulated) => {
            return Ok(Renewal {
                destinations: simulated.destinations(),
                execution: Execution::ReplaceFirst(simulated.claims),
            });
        }
        Err(unsound) => unsound,
    };
    let is_stranded = matches!(unsound, Unsound::Stranded { .. });
    let slot = candidate.node.reservation_id();
    let Some(slot) = slot.filter(|_| is_stranded && order.may_terminate_first()) else {
        return Err(unsound.into());
    };
    let simulator = scene.simulator_after_termination(slot);
    match simulator.without(&removed, purpose) {
        Ok(simulated) => Ok(Renewal {
            // Provisioning makes up for the node once it is gone.
            execution: Execution::TerminateFirst(TerminateFirst::NoReservedCapacity),
            destinations: simulated.destinations(),
        }),
        Err(_) => Err(unsound.into()),
    }
}
