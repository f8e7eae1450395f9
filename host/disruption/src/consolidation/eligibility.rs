//! Which candidates consolidation may look at, by what their NodePool and they themselves say.

use apis::ConsolidationPolicy;
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::obstacle::Obstacle;

/// Why a candidate is no matter for consolidation, apart from being empty.
pub(crate) fn eligibility(candidate: &Candidate) -> Result<(), Obstacle> {
    let disruption = &candidate.node_pool.spec.disruption;
    let blocked = |outcome, reason: &str| Err(Obstacle::new(outcome, reason));
    if candidate.node_pool.is_static() {
        return blocked(OutcomeId::NodeStaticPool, "");
    }
    if candidate.instance_type.is_none() {
        return blocked(OutcomeId::NodeTypeUnknown, candidate.instance_type_name());
    }
    if candidate.capacity_type().is_empty() {
        return blocked(OutcomeId::NodeWithoutCapacityType, "");
    }
    if candidate.zone().is_empty() {
        return blocked(OutcomeId::NodeWithoutZone, "");
    }
    if disruption.consolidate_after.is_never() {
        return blocked(OutcomeId::NodeConsolidationNever, "");
    }
    match disruption.consolidation_policy {
        ConsolidationPolicy::WhenEmpty if !candidate.is_empty() => {
            return blocked(OutcomeId::NodePolicyWhenEmpty, "");
        }
        ConsolidationPolicy::WhenEmpty
        | ConsolidationPolicy::WhenEmptyOrUnderutilized
        | ConsolidationPolicy::Balanced => {}
    }
    if !candidate.is_consolidatable() {
        return blocked(
            OutcomeId::NodeNotConsolidatable,
            disruption.consolidate_after.raw(),
        );
    }
    Ok(())
}
