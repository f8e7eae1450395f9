//! Drift: a node that no longer matches its definition is replaced, one a command, oldest first.
//!
//! Prices do not matter here and neither does `consolidateAfter`. Answers to Karpenter's
//! `disruption/drift.go`.

use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::Proposal;
use crate::consolidation::Obstacle;
use crate::method::Method;
use crate::simulation::{Purpose, Simulator};

/// Whether a candidate is for this method.
pub fn is_eligible(candidate: &Candidate) -> bool {
    candidate.drifted_at().is_some() && !candidate.node_pool.is_static()
}

/// Rows in the order in which they are tried: those without pods to move first, then by time of drift.
pub fn order(candidates: &[Candidate]) -> Vec<usize> {
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

/// Replaces one node, by as many as it takes.
pub fn compute(
    simulator: &Simulator<'_>,
    candidates: &[Candidate],
    row: usize,
) -> Result<Proposal, Obstacle> {
    let removed: Vec<&Candidate> = candidates.get(row).into_iter().collect();
    let simulated = simulator.without(&removed, Purpose::Renewal);
    if simulated.is_interrupted {
        return Err(Obstacle::new(
            OutcomeId::NodeNotReached,
            "the simulation was cut off",
        ));
    }
    let destinations = simulated.destinations();
    let lost = simulated.stranded.or(simulated.uninitialized);
    if let Some((pod, error)) = lost {
        return Err(Obstacle::new(
            OutcomeId::NodePodsDoNotFit,
            format!("pod {pod}: {error}"),
        ));
    }
    Ok(Proposal {
        method: Method::Drift,
        rows: vec![row],
        cost_before_per_hour: removed.iter().map(|it| it.price_per_hour).sum(),
        cost_after_per_hour: simulated
            .claims
            .iter()
            .map(|it| it.best.price_per_hour)
            .sum(),
        replacements: simulated.claims,
        destinations,
    })
}
