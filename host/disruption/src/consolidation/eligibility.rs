//! Which candidates consolidation may look at, by what their NodePool and they themselves say.

use apis::ConsolidationPolicy;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::obstacle::Obstacle;

/// Why a candidate is no matter for consolidation, apart from being empty.
pub(crate) fn eligibility(candidate: &Candidate) -> Result<(), Obstacle> {
    let blocked = |outcome, reason: &str| Err(Obstacle::new(outcome, reason));
    not_static(candidate)?;
    if candidate.instance_type.is_none() {
        return blocked(OutcomeId::NodeTypeUnknown, candidate.instance_type_name());
    }
    if candidate.capacity_type().is_empty() {
        return blocked(OutcomeId::NodeWithoutCapacityType, "");
    }
    if candidate.zone().is_empty() {
        return blocked(OutcomeId::NodeWithoutZone, "");
    }
    sometimes(candidate)?;
    match candidate.node_pool.spec.disruption.consolidation_policy {
        ConsolidationPolicy::WhenEmpty if !candidate.is_empty() => {
            return blocked(OutcomeId::NodePolicyWhenEmpty, "");
        }
        ConsolidationPolicy::WhenEmpty
        | ConsolidationPolicy::WhenEmptyOrUnderutilized
        | ConsolidationPolicy::Balanced => {}
    }
    at_rest(candidate)
}

/// Why a candidate may not even go when nothing runs on it.
pub(crate) fn eligibility_when_empty(candidate: &Candidate) -> Result<(), Obstacle> {
    not_static(candidate)?;
    sometimes(candidate)?;
    at_rest(candidate)
}

fn not_static(candidate: &Candidate) -> Result<(), Obstacle> {
    if candidate.node_pool.is_static() {
        return Err(Obstacle::new(OutcomeId::NodeStaticPool, ""));
    }
    Ok(())
}

fn sometimes(candidate: &Candidate) -> Result<(), Obstacle> {
    let after = &candidate.node_pool.spec.disruption.consolidate_after;
    if after.is_never() {
        return Err(Obstacle::new(OutcomeId::NodeConsolidationNever, ""));
    }
    Ok(())
}

fn at_rest(candidate: &Candidate) -> Result<(), Obstacle> {
    if candidate.is_consolidatable() {
        return Ok(());
    }
    let after = candidate.node_pool.spec.disruption.consolidate_after.raw();
    Err(Obstacle::new(OutcomeId::NodeNotConsolidatable, after))
}
