//! One new node that costs less than what goes, whichever of its types is launched.
//!
//! Answers to Karpenter's `disruption/consolidation.go` (`computeConsolidation`) and `filterOutSameInstanceType` of
//! `disruption/multinodeconsolidation.go`.

use std::collections::BTreeSet;

use apis::labels;
use scheduling::SPOT_TYPES_MIN;
use scheduling::requirements::{Operator, Requirement};
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use super::price::Types;
use super::removal::Removal;
use crate::method::Method;
use crate::obstacle::Obstacle;

/// Leaves the claim only types that are cheaper than the nodes that go.
pub(super) fn leave_cheaper_types(
    claim: &mut NewClaim,
    it: Removal<'_, '_, '_>,
) -> Result<(), Obstacle> {
    let types = it.scene.what_if().types(&claim.pool);
    cheapen(claim, it, &types)?;
    if it.method == Method::MultiNodeConsolidation {
        drop_types_being_removed(claim, it, &types)?;
    }
    types.refresh_summary(claim);
    Ok(())
}

/// Leaves only the types that cannot cost more than what goes.
fn cheapen(claim: &mut NewClaim, it: Removal<'_, '_, '_>, types: &Types) -> Result<(), Obstacle> {
    let cost_before = it.cost().effective_per_hour;
    let mut removed = it.removed.iter();
    let are_all_spot = removed.all(|it| it.capacity_type() == labels::CAPACITY_TYPE_SPOT);
    let is_spot_to_spot =
        are_all_spot && types.preferred_capacity_type(claim) == Some(labels::CAPACITY_TYPE_SPOT);
    if is_spot_to_spot {
        if !it.scene.input.gates.spot_to_spot {
            return Err(Obstacle::new(OutcomeId::NodeSpotToSpotDisabled, ""));
        }
        pin_to(claim, labels::CAPACITY_TYPE_SPOT);
        let choice = types.choice(claim);
        claim
            .instance_types
            .retain(|name| choice.cheapest(name).is_some());
    }
    leave_cheaper(claim, types, cost_before)?;
    let Some(needed) = types.needed_for_min_values(claim) else {
        return Err(Obstacle::new(OutcomeId::NodeMinValues, ""));
    };
    if is_spot_to_spot && it.method == Method::SingleNodeConsolidation {
        // Else the replacement may be the one type that is about to be interrupted.
        let cheaper = claim.instance_types.len();
        if cheaper < SPOT_TYPES_MIN {
            return Err(Obstacle::new(
                OutcomeId::NodeSpotToSpotFewTypes,
                format!("{cheaper} cheaper instance types, {SPOT_TYPES_MIN} needed"),
            ));
        }
        let kept = SPOT_TYPES_MIN.max(needed);
        claim.instance_types.truncate(kept);
    }
    // The other would be launched when the preferred one has no capacity, and might cost more than what goes.
    if types.may_be_spot_or_on_demand(claim) && pin_to_preferred(claim, types) {
        leave_cheaper(claim, types, cost_before)?;
    }
    Ok(())
}

/// Leaves the types that cost less wherever they are launched.
fn leave_cheaper(claim: &mut NewClaim, types: &Types, cost_before: f64) -> Result<(), Obstacle> {
    let choice = types.choice(claim);
    let cheapest_before = claim.instance_types.first().map(|name| choice.worst(name));
    claim
        .instance_types
        .retain(|name| choice.worst(name) < cost_before);
    if claim.instance_types.is_empty() {
        let best = cheapest_before.unwrap_or(f64::INFINITY);
        return Err(Obstacle::new(
            OutcomeId::NodeNoCheaperReplacement,
            format!("now {cost_before:.4} USD an hour, the replacement {best:.4}"),
        ));
    }
    Ok(())
}

/// Pins a claim to the capacity type that costs least; whether that is another than spot, which types were chosen by.
pub(super) fn pin_to_preferred(claim: &mut NewClaim, types: &Types) -> bool {
    let preferred = types.preferred_capacity_type(claim);
    let preferred = preferred.unwrap_or(labels::CAPACITY_TYPE_SPOT).to_owned();
    pin_to(claim, &preferred);
    preferred != labels::CAPACITY_TYPE_SPOT
}

fn pin_to(claim: &mut NewClaim, capacity_type: &str) {
    let mut pinned = Requirement::new(labels::CAPACITY_TYPE, Operator::In, [capacity_type]);
    pinned.min_values = claim.requirements.get(labels::CAPACITY_TYPE).min_values;
    claim.requirements.replace(pinned);
    claim.capacity_types = BTreeSet::from([capacity_type.to_owned()]);
}

/// Replacing `[2xl, 2xl, small]` by a `small` is deleting two nodes the hard way: when a type that goes
/// could also come, only strictly cheaper ones may.
fn drop_types_being_removed(
    claim: &mut NewClaim,
    it: Removal<'_, '_, '_>,
    types: &Types,
) -> Result<(), Obstacle> {
    let costs = it.scene.what_if().costs;
    let removed = it.removed.iter();
    let shared = removed
        .filter(|it| {
            claim
                .instance_types
                .iter()
                .any(|name| name == it.instance_type_name())
        })
        .map(|it| costs.of(it).effective_per_hour)
        .min_by(f64::total_cmp);
    let Some(cost_max) = shared else {
        return Ok(());
    };
    let choice = types.choice(claim);
    claim
        .instance_types
        .retain(|name| choice.worst(name) < cost_max);
    if claim.instance_types.is_empty() {
        return Err(Obstacle::new(
            OutcomeId::NodeNoCheaperReplacement,
            "a node of the same type would come back",
        ));
    }
    match types.needed_for_min_values(claim) {
        Some(_) => Ok(()),
        None => Err(Obstacle::new(OutcomeId::NodeMinValues, "")),
    }
}
