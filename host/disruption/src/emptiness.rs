//! Emptiness: nodes on which nothing is worth moving go, all of them in one command.
//!
//! No simulation: what little runs there is worth less than nothing. Answers to Karpenter's
//! `disruption/emptiness.go`.

use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::{Cost, Manner, Proposal};
use crate::consolidation::Obstacle;
use crate::method::Method;

/// Whether a candidate is for this method, and if it nearly is, what is missing.
pub fn eligibility(candidate: &Candidate) -> Result<bool, Obstacle> {
    if !candidate.is_empty() {
        return Ok(false);
    }
    let disruption = &candidate.node_pool.spec.disruption;
    if candidate.node_pool.is_static() {
        return Err(Obstacle::new(OutcomeId::NodeStaticPool, ""));
    }
    if disruption.consolidate_after.is_never() {
        return Err(Obstacle::new(OutcomeId::NodeConsolidationNever, ""));
    }
    if !candidate.is_consolidatable() {
        return Err(Obstacle::new(
            OutcomeId::NodeNotConsolidatable,
            disruption.consolidate_after.raw(),
        ));
    }
    Ok(true)
}

/// The removal of one empty node, for the policy to judge.
pub fn proposal(candidate: &Candidate, row: usize) -> Proposal {
    Proposal {
        manner: Manner::default(),
        method: Method::Emptiness,
        rows: vec![row],
        replacements: Vec::new(),
        destinations: Vec::new(),
        before: candidate.cost,
        after: Cost::default(),
    }
}

/// All approved removals as one.
pub fn merge(proposals: impl IntoIterator<Item = Proposal>) -> Option<Proposal> {
    proposals.into_iter().reduce(|mut all, next| {
        all.rows.extend(next.rows);
        all.before = [all.before, next.before].into_iter().sum();
        all
    })
}
