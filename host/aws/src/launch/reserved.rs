//! Which capacity reservations a launch may run in.
//!
//! Pure. Kinds of reservation cannot be mixed in one fleet. Answers to the reservation filters of Karpenter's
//! `pkg/providers/instance/filter/filter.go`.

use std::collections::BTreeMap;

use apis::ec2nodeclass::CapacityReservationType;
use apis::{CapacityType, NodeClaim, labels};
use scheduling::instance_type::Offering;
use scheduling::requirements::{AllowUndefined, Requirements};

use super::filter::{LaunchableType, TypeAndZone, keep_offerings, type_and_zone};

/// A reservation chosen for a type and zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) id: String,
    pub(super) kind: CapacityReservationType,
    /// Whether its owner may take it back.
    pub(super) is_interruptible: bool,
    /// Slots that are free.
    pub(super) free: u32,
}

/// The reservation that is chosen for a type in a zone.
pub(super) type ByOffering = BTreeMap<TypeAndZone, Reservation>;

/// Keeps the reserved offerings of one kind, the cheapest by effective cost and then by list price; for each type and
/// zone the reservation with the most free slots.
pub(super) fn reserve(
    candidates: Vec<LaunchableType>,
    claim: &NodeClaim,
) -> (Vec<LaunchableType>, ByOffering) {
    let requirements = Requirements::from_node_selector_requirements(&claim.spec.requirements);
    let kinds = [
        (CapacityReservationType::Default, false),
        (CapacityReservationType::CapacityBlock, false),
        (CapacityReservationType::Default, true),
    ];
    let mut best: Option<([f64; 2], ByOffering)> = None;
    for (kind, is_interruptible) in kinds {
        let (costs, reservations) = of_kind(&candidates, &requirements, kind, is_interruptible);
        let is_better = best.as_ref().is_none_or(|(cheapest, _)| costs < *cheapest);
        if !reservations.is_empty() && is_better {
            best = Some((costs, reservations));
        }
    }
    let mut reservations = best
        .map(|(_, reservations)| reservations)
        .unwrap_or_default();
    keep_one_block(&mut reservations, &candidates);
    let is_kept = |offering: &scheduling::ranking::RankedOffering| {
        offering.capacity_type == CapacityType::Reserved
            && reservations.contains_key(&type_and_zone(offering))
    };
    (keep_offerings(candidates, is_kept), reservations)
}

/// The reservations of a kind, with the effective cost and the list price of the cheapest.
fn of_kind(
    candidates: &[LaunchableType],
    requirements: &Requirements,
    kind: CapacityReservationType,
    is_interruptible: bool,
) -> ([f64; 2], ByOffering) {
    let mut cheapest = [f64::INFINITY; 2];
    let mut reservations = ByOffering::new();
    for candidate in candidates {
        for offering in candidate
            .instance_type
            .offerings
            .iter()
            .filter(|o| o.is_reserved() && o.is_launchable())
        {
            let Some(zone) = offering.zone() else {
                continue;
            };
            let is_compatible = requirements
                .compatible(&offering.requirements, AllowUndefined::WellKnown)
                .is_ok();
            let ranked = candidate.offerings.iter().find(|ranked| {
                ranked.capacity_type == CapacityType::Reserved && *ranked.zone == *zone
            });
            let Some(ranked) = ranked else {
                continue;
            };
            let reservation = reservation(offering);
            if !is_compatible
                || (reservation.kind, reservation.is_interruptible) != (kind, is_interruptible)
            {
                continue;
            }
            let costs = [ranked.effective_cost_per_hour, offering.price_per_hour];
            if costs < cheapest {
                cheapest = costs;
            }
            let key = (candidate.instance_type.name.as_str().into(), zone.into());
            let has_more = reservations
                .get(&key)
                .is_none_or(|other| reservation.free > other.free);
            if has_more {
                reservations.insert(key, reservation);
            }
        }
    }
    (cheapest, reservations)
}

/// A fleet takes a single block: that of the best candidate.
fn keep_one_block(reservations: &mut ByOffering, candidates: &[LaunchableType]) {
    let is_block =
        |reservation: &Reservation| reservation.kind == CapacityReservationType::CapacityBlock;
    if !reservations.values().any(is_block) {
        return;
    }
    let offered = candidates.iter().flat_map(|candidate| &candidate.offerings);
    let mut keys = offered.map(type_and_zone);
    let first = keys.find(|key| reservations.contains_key(key));
    reservations.retain(|key, _| Some(key) == first.as_ref());
}

/// What a reserved offering says of its reservation.
pub(super) fn reservation(offering: &Offering) -> Reservation {
    let value = |key: &str| {
        let requirement = offering.requirements.find(key);
        requirement
            .and_then(|requirement| requirement.values().next())
            .unwrap_or_default()
            .to_owned()
    };
    let is_block =
        value(labels::CAPACITY_RESERVATION_TYPE) == CapacityReservationType::CapacityBlock.as_str();
    Reservation {
        id: offering.reservation_id().unwrap_or_default().to_owned(),
        kind: if is_block {
            CapacityReservationType::CapacityBlock
        } else {
            CapacityReservationType::Default
        },
        is_interruptible: value(labels::CAPACITY_RESERVATION_INTERRUPTIBLE) == "true",
        free: offering.reservation_capacity,
    }
}

#[cfg(test)]
mod tests;
