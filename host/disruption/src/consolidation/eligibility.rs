//! Which candidates consolidation may look at, by what their NodePool and they themselves say.
//!
//! Looks at no move. Answers to `ShouldDisrupt` in Karpenter's `disruption/consolidation.go` and
//! `disruption/emptiness.go`.

use apis::{ConsolidationPolicy, GoDuration, labels};
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::obstacle::Obstacle;
use crate::scene::Scene;

/// A rule that keeps a node, or lets it pass. Whatever the loop was given is there to be asked.
pub(crate) type NodeRule = fn(&Scene<'_>, &Candidate) -> Result<(), Obstacle>;

/// Every rule that a node has to pass, apart from being empty, in the order in which they are asked; after them it has
/// to be consolidatable.
const RULES: [NodeRule; 4] = [
    is_not_static,
    type_zone_and_capacity_type_are_known,
    consolidate_after_is_set,
    policy_takes_underutilized,
];

/// Those for a node that is to go because it is empty.
const RULES_WHEN_EMPTY: [NodeRule; 3] = [holds_no_buffer, is_not_static, consolidate_after_is_set];

/// Why a candidate is no matter for consolidation, apart from being empty.
pub(crate) fn eligibility(scene: &Scene<'_>, candidate: &Candidate) -> Result<(), Obstacle> {
    let mut rules = RULES.iter();
    rules.try_for_each(|rule| rule(scene, candidate))?;
    is_consolidatable(candidate)
}

/// Why a candidate may not even go when nothing runs on it.
pub(crate) fn eligibility_when_empty(
    scene: &Scene<'_>,
    candidate: &Candidate,
) -> Result<(), Obstacle> {
    let mut rules = RULES_WHEN_EMPTY.iter();
    rules.try_for_each(|rule| rule(scene, candidate))?;
    is_consolidatable(candidate)
}

/// Whether nothing but the last pod event keeps the candidate, and that for no longer than `within`.
pub(crate) fn becomes_consolidatable(
    scene: &Scene<'_>,
    candidate: &Candidate,
    within: GoDuration,
) -> bool {
    let after = &candidate.node_pool.spec.disruption.consolidate_after;
    let is_soon = after.duration().is_some_and(|after| after <= within);
    let passes = || RULES.iter().all(|rule| rule(scene, candidate).is_ok());
    is_soon && !candidate.is_consolidatable() && passes()
}

fn holds_no_buffer(scene: &Scene<'_>, candidate: &Candidate) -> Result<(), Obstacle> {
    if scene.buffer_nodes().contains(&candidate.node.node_ref()) {
        return Err(OutcomeId::NodeHoldsBuffer.into());
    }
    Ok(())
}

fn is_not_static(_: &Scene<'_>, candidate: &Candidate) -> Result<(), Obstacle> {
    if candidate.node_pool.is_static() {
        return Err(OutcomeId::NodeStaticPool.into());
    }
    Ok(())
}

fn type_zone_and_capacity_type_are_known(
    _: &Scene<'_>,
    candidate: &Candidate,
) -> Result<(), Obstacle> {
    if candidate.instance_type.is_none() {
        let name = candidate.instance_type_name().unwrap_or_default();
        return Err(Obstacle::new(OutcomeId::NodeTypeUnknown, name));
    }
    let capacity_type = candidate.node.label(labels::CAPACITY_TYPE);
    if capacity_type.is_none_or(str::is_empty) {
        return Err(OutcomeId::NodeWithoutCapacityType.into());
    }
    if candidate.zone().is_none() {
        return Err(OutcomeId::NodeWithoutZone.into());
    }
    Ok(())
}

fn consolidate_after_is_set(_: &Scene<'_>, candidate: &Candidate) -> Result<(), Obstacle> {
    let after = &candidate.node_pool.spec.disruption.consolidate_after;
    if after.is_never() {
        return Err(OutcomeId::NodeConsolidationNever.into());
    }
    Ok(())
}

fn policy_takes_underutilized(_: &Scene<'_>, candidate: &Candidate) -> Result<(), Obstacle> {
    match candidate.node_pool.spec.disruption.consolidation_policy {
        ConsolidationPolicy::WhenEmpty if !candidate.is_empty() => {
            Err(OutcomeId::NodePolicyWhenEmpty.into())
        }
        ConsolidationPolicy::WhenEmpty
        | ConsolidationPolicy::WhenEmptyOrUnderutilized
        | ConsolidationPolicy::Balanced => Ok(()),
    }
}

fn is_consolidatable(candidate: &Candidate) -> Result<(), Obstacle> {
    if candidate.is_consolidatable() {
        return Ok(());
    }
    let after = candidate.node_pool.spec.disruption.consolidate_after.raw();
    Err(Obstacle::new(OutcomeId::NodeNotConsolidatable, after))
}
