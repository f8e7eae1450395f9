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
use crate::method::Method;
use crate::obstacle::Obstacle;
use crate::scan::Scan;
use crate::scene::Scene;
use crate::simulation::{Purpose, Unsound};

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
    candidates: Vec<&'s Candidate>,
    method: Method,
) -> Option<Command> {
    let scene = scan.scene;
    let may_go_first = scene.input.gates.terminate_first_drift;
    for candidate in candidates {
        if scan.note_if_held(candidate) {
            continue;
        }
        let cost = scene.what_if().costs.of(candidate);
        match renew(scene, candidate, Purpose::Renewal, may_go_first) {
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
    may_go_first: bool,
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
    let slot = Some(candidate.node.reservation_id()).filter(|it| may_go_first && !it.is_empty());
    let slot = slot.filter(|_| matches!(unsound, Unsound::Stranded { .. }));
    let Some(slot) = slot else {
        return Err(unsound.into());
    };
    let simulator = scene.simulator_with_slot(slot);
    match simulator.without(&removed, purpose) {
        Ok(simulated) => Ok(Renewal {
            // Provisioning makes up for the node once it is gone.
            execution: Execution::TerminateFirst(TerminateFirst::NoReservedCapacity),
            destinations: simulated.destinations(),
        }),
        Err(_) => Err(unsound.into()),
    }
}
