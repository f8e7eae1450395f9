//! Drift: a node that no longer matches its definition is replaced, one a command, oldest first.
//!
//! Prices do not matter here and neither does `consolidateAfter`. Answers to Karpenter's
//! `disruption/drift.go` and, for nodes that hold a slot of a full reservation, to its `terminatefirst.go`.

use state::ledger::OutcomeId;

use crate::candidate::{Blocked, Candidate};
use crate::command::{Cost, Manner, Proposal, TerminateFirst};
use crate::consolidation::Obstacle;
use crate::method::Method;
use crate::simulation::{Purpose, Simulated, Simulator};
use crate::static_drift::reservation_of;

/// Whether a candidate is for this method.
pub fn is_eligible(candidate: &Candidate) -> bool {
    candidate.drifted_at().is_some() && !candidate.node_pool.is_static()
}

/// Rows in the order in which they are tried: those without pods to move first, then by time of drift.
pub fn order(candidates: &[Candidate], is_eligible: fn(&Candidate) -> bool) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..candidates.len())
        .filter(|&row| candidates.get(row).is_some_and(is_eligible))
        .collect();
    rows.sort_by_key(|&row| {
        let it = candidates.get(row);
        (
            it.is_some_and(|it| !it.reschedulable.is_empty()),
            it.and_then(Candidate::drifted_at),
            it.map(|it| it.name().to_owned()),
        )
    });
    rows
}

/// What is told as `DisruptionBlocked` of a drifted node that could go but for what should come in its place: its pods
/// find none, or its pool of replicas may have no node more.
pub(crate) fn blocked(candidate: &Candidate, obstacle: &Obstacle) -> Option<Blocked> {
    let is_told = matches!(
        obstacle.outcome,
        OutcomeId::NodePodsDoNotFit
            | OutcomeId::NodeStaticAtLimit
            | OutcomeId::NodeReservationsFull
    );
    let rule = obstacle.outcome.meaning().trim_end_matches('.');
    let message = format!("{rule}: {}", obstacle.reason);
    is_told.then(|| Blocked::candidate(candidate, (obstacle.outcome, "", &message)))
}

/// The reservation whose slot the node would leave to its own pods, where that is allowed.
pub fn slot_of(candidate: &Candidate, is_gate_open: bool) -> Option<&str> {
    reservation_of(candidate).filter(|_| is_gate_open)
}

/// Replaces one node, by as many as it takes. Where its pods find no place and the node holds a slot of a
/// reservation, `with_slot` simulates the cluster in which that slot is free, and the node goes first.
pub fn renew<'a>(
    simulator: &Simulator<'_>,
    candidate: &Candidate,
    (method, purpose): (Method, Purpose),
    with_slot: impl FnOnce() -> Option<Simulator<'a>>,
) -> Result<Proposal, Obstacle> {
    let obstacle = match placed(simulator, candidate, purpose) {
        Ok(simulated) => {
            return Ok(proposal(candidate, method, Manner::ReplaceFirst, simulated));
        }
        Err(obstacle) => obstacle,
    };
    if obstacle.outcome != OutcomeId::NodePodsDoNotFit {
        return Err(obstacle);
    }
    let Some(simulator) = with_slot() else {
        return Err(obstacle);
    };
    match placed(&simulator, candidate, purpose) {
        Ok(mut simulated) => {
            // Provisioning makes up for the node once it is gone.
            simulated.claims.clear();
            let manner = Manner::TerminateFirst(TerminateFirst::NoReservedCapacity);
            Ok(proposal(candidate, method, manner, simulated))
        }
        Err(_) => Err(obstacle),
    }
}

fn placed(
    simulator: &Simulator<'_>,
    candidate: &Candidate,
    purpose: Purpose,
) -> Result<Simulated, Obstacle> {
    let mut simulated = simulator.without(&[candidate], purpose);
    if simulated.is_interrupted {
        return Err(Obstacle::new(
            OutcomeId::NodeNotReached,
            "the simulation was cut off",
        ));
    }
    let lost = simulated.stranded.take();
    if let Some((pod, error)) = lost.or_else(|| simulated.uninitialized.take()) {
        return Err(Obstacle::new(
            OutcomeId::NodePodsDoNotFit,
            format!("pod {pod}: {error}"),
        ));
    }
    Ok(simulated)
}

fn proposal(
    candidate: &Candidate,
    method: Method,
    manner: Manner,
    simulated: Simulated,
) -> Proposal {
    Proposal {
        method,
        manner,
        rows: Vec::new(),
        destinations: simulated.destinations(),
        before: candidate.cost,
        after: Cost::of_claims(&simulated.claims),
        replacements: simulated.claims,
    }
}
