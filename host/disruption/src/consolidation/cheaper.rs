//! One new node that costs less than what goes, whichever of its types is launched.
//!
//! Answers to Karpenter's `disruption/consolidation.go` (`computeConsolidation`) and `filterOutSameInstanceType` of
//! `disruption/multinodeconsolidation.go`.

use std::collections::BTreeSet;

use apis::{CapacityType, labels};
use scheduling::SPOT_TYPES_MIN;
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use super::price::Types;
use super::removal::Removal;
use crate::method::ConsolidationMethod;
use crate::obstacle::Obstacle;

/// Why one new node does not do.
pub(super) enum OneNodeError {
    /// Several might: there is too little room on one, or none is cheaper.
    SeveralMightDo(Obstacle),
    /// Several new nodes would not do either.
    NoneWillDo(Obstacle),
}

impl From<OneNodeError> for Obstacle {
    fn from(error: OneNodeError) -> Self {
        match error {
            OneNodeError::SeveralMightDo(obstacle) | OneNodeError::NoneWillDo(obstacle) => obstacle,
        }
    }
}

fn none_will_do(obstacle: impl Into<Obstacle>) -> OneNodeError {
    OneNodeError::NoneWillDo(obstacle.into())
}

fn none_is_cheaper(message: impl Into<String>) -> OneNodeError {
    OneNodeError::SeveralMightDo(Obstacle::new(OutcomeId::NodeNoCheaperReplacement, message))
}

/// Leaves the claim only types that are cheaper than the nodes that go.
pub(super) fn narrow_to_savings(
    claim: &mut NewClaim,
    removal: Removal<'_, '_, '_>,
) -> Result<(), OneNodeError> {
    let types = removal.priced.types(&claim.pool);
    apply_spot_and_price_rules(claim, removal, &types)?;
    if removal.method == ConsolidationMethod::Multi {
        drop_types_being_removed(claim, removal, &types)?;
    }
    types.refresh_summary(claim);
    Ok(())
}

/// Leaves only the types that cannot cost more than what goes.
fn apply_spot_and_price_rules(
    claim: &mut NewClaim,
    removal: Removal<'_, '_, '_>,
    types: &Types,
) -> Result<(), OneNodeError> {
    let cost_before = removal.cost().effective_per_hour;
    let mut removed = removal.removed.iter();
    let are_all_spot = removed.all(|it| it.capacity_type() == Some(CapacityType::Spot));
    let is_spot_to_spot =
        are_all_spot && types.preferred_capacity_type(claim) == Some(CapacityType::Spot);
    if is_spot_to_spot {
        if !removal.priced.gates.spot_to_spot {
            return Err(none_will_do(OutcomeId::NodeSpotToSpotDisabled));
        }
        pin_to(claim, CapacityType::Spot);
        let choice = types.choice(claim);
        claim
            .instance_types
            .retain(|name| choice.cheapest(name).is_some());
    }
    retain_cheaper(claim, types, cost_before)?;
    let Some(needed) = types.needed_for_min_values(claim) else {
        return Err(none_will_do(OutcomeId::NodeMinValues));
    };
    if is_spot_to_spot && removal.method == ConsolidationMethod::Single {
        // Else the replacement may be the one type that is about to be interrupted.
        let cheaper = claim.instance_types.len();
        if cheaper < SPOT_TYPES_MIN {
            let message = format!("{cheaper} cheaper instance types, {SPOT_TYPES_MIN} needed");
            let obstacle = Obstacle::new(OutcomeId::NodeSpotToSpotFewTypes, message);
            return Err(none_will_do(obstacle));
        }
        let kept = SPOT_TYPES_MIN.max(needed);
        claim.instance_types.truncate(kept);
    }
    // The other would be launched when the preferred one has no capacity, and might cost more than what goes.
    if types.may_be_spot_or_on_demand(claim) {
        let preferred = pin_to_preferred(claim, types);
        // The types were chosen by spot.
        if preferred != Some(CapacityType::Spot) {
            retain_cheaper(claim, types, cost_before)?;
        }
    }
    Ok(())
}

/// Leaves the types that cost less than what goes; where none does, what the cheapest of them would cost is told.
fn retain_cheaper(
    claim: &mut NewClaim,
    types: &Types,
    cost_before: f64,
) -> Result<(), OneNodeError> {
    retain_below(claim, types, cost_before)
        .map_err(|cheapest| none_is_cheaper(price_text(cost_before, cheapest)))
}

/// What a node costs now, beside the least that another would.
fn price_text(cost_before: f64, cheapest: f64) -> String {
    let instead = if cheapest.is_finite() {
        format!("the replacement {cheapest:.4}")
    } else {
        "and nothing that could be launched instead".to_owned()
    };
    format!("now {cost_before:.4} USD an hour, {instead}")
}

/// Leaves the types that cost less than this wherever they are launched; where none does, what the cheapest of them
/// costs: more than any sum where no launch could get one.
pub(super) fn retain_below(
    claim: &mut NewClaim,
    types: &Types,
    cost_per_hour: f64,
) -> Result<(), f64> {
    let choice = types.choice(claim);
    let mut cheapest = f64::INFINITY;
    claim.instance_types.retain(|name| {
        let cost = choice.worst(name);
        cheapest = cheapest.min(cost);
        cost < cost_per_hour
    });
    if claim.instance_types.is_empty() {
        return Err(cheapest);
    }
    Ok(())
}

/// Pins a claim to the capacity type that costs least, where its word is known.
pub(super) fn pin_to_preferred(claim: &mut NewClaim, types: &Types) -> Option<CapacityType> {
    let preferred = types.preferred_capacity_type(claim)?;
    pin_to(claim, preferred);
    Some(preferred)
}

fn pin_to(claim: &mut NewClaim, capacity_type: CapacityType) {
    claim.pin_to(labels::CAPACITY_TYPE, capacity_type.as_str());
    claim.capacity_types = BTreeSet::from([capacity_type]);
}

/// Replacing `[2xl, 2xl, small]` by a `small` is deleting two nodes the hard way: when a type that goes
/// could also come, only strictly cheaper ones may.
fn drop_types_being_removed(
    claim: &mut NewClaim,
    removal: Removal<'_, '_, '_>,
    types: &Types,
) -> Result<(), OneNodeError> {
    let costs = removal.priced.costs;
    let comes_back = |name: &str| claim.instance_types.iter().any(|it| it == name);
    let removed = removal.removed.iter();
    let shared = removed
        .filter(|it| it.instance_type_name().is_some_and(comes_back))
        .map(|it| costs.of(it).effective_per_hour)
        .min_by(f64::total_cmp);
    let Some(cost_max) = shared else {
        return Ok(());
    };
    if retain_below(claim, types, cost_max).is_err() {
        return Err(none_is_cheaper("a node of the same type would come back"));
    }
    match types.needed_for_min_values(claim) {
        Some(_) => Ok(()),
        None => Err(none_will_do(OutcomeId::NodeMinValues)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_is_told_where_there_is_one() {
        for (cheapest, expected) in [
            (0.25, "now 0.2000 USD an hour, the replacement 0.2500"),
            (
                f64::INFINITY,
                "now 0.2000 USD an hour, and nothing that could be launched instead",
            ),
        ] {
            assert_eq!(price_text(0.2, cheapest), expected);
        }
    }
}
