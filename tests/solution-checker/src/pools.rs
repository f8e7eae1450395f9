//! What pools must keep over all their claims: limits, and slots of reservations.

use std::collections::{BTreeMap, BTreeSet};

use apis::resources::Resources;
use apis::{CapacityType, labels};
use scheduling::Problem;
use scheduling::problem::{Pool, ReservedMode};

use crate::amounts::Amounts;
use crate::layout::{ClaimPlace, Layout};
use crate::{Faults, Rule};

pub(crate) fn check(problem: &Problem, layout: &Layout<'_>, faults: &mut Faults) {
    for pool in &problem.pools {
        let name = pool.node_pool.metadata.name.as_deref().unwrap_or("");
        let of_pool = layout.places.iter().filter_map(|p| p.claim());
        let claims: Vec<&ClaimPlace<'_>> = of_pool.filter(|c| c.claim.pool == name).collect();
        limits(name, pool, &claims, faults);
    }
    reservations(problem, layout, faults);
}

/// No pass may overrun a limit, whichever of its types each claim becomes.
fn limits(name: &str, pool: &Pool, claims: &[&ClaimPlace<'_>], faults: &mut Faults) {
    let Some(limits) = &pool.node_pool.spec.limits else {
        return;
    };
    if claims.is_empty() {
        return;
    }
    let used = Amounts::of(&pool.in_use);
    for (resource, limit) in Resources::from_list(limits).iter() {
        let greatest = |claim: &&ClaimPlace<'_>| {
            let amounts = claim.types.iter().map(|t| t.capacity.get(resource));
            i128::from(amounts.max().unwrap_or(0))
        };
        let new: i128 = if resource == labels::RESOURCE_NODES {
            1000 * claims.len() as i128
        } else {
            claims.iter().map(greatest).sum()
        };
        let total = used.get(resource) + new;
        if new > 0 && total > i128::from(limit) {
            let what = format!("{name} may come to {total} of {resource}, its limit is {limit}");
            faults.add(Rule::Limits, what);
        }
    }
}

/// Claims that are to run in a reservation never outnumber its free slots.
fn reservations(problem: &Problem, layout: &Layout<'_>, faults: &mut Faults) {
    let mut slots: BTreeMap<&str, u32> = BTreeMap::new();
    let sold = problem.pools.iter().flat_map(|p| p.instance_types.iter());
    for offering in sold.flat_map(|t| &t.offerings).filter(|o| o.is_available()) {
        if offering.capacity_type() == Some(CapacityType::Reserved) {
            let free = offering.reservation_capacity;
            let id = offering.reservation_id().unwrap_or_default();
            let known = slots.entry(id).or_insert(free);
            *known = (*known).min(free);
        }
    }
    let mut taken: BTreeMap<&str, u32> = BTreeMap::new();
    for place in &layout.places {
        let Some(claim) = place.claim() else { continue };
        let ids: BTreeSet<&str> = claim
            .sales
            .iter()
            .filter(|(_, o)| o.capacity_type() == Some(CapacityType::Reserved))
            .map(|(_, o)| o.reservation_id().unwrap_or_default())
            .collect();
        if problem.options.reserved == ReservedMode::Off && !ids.is_empty() {
            let what = format!("{} runs in a reservation, which is off", place.name);
            faults.add(Rule::Reservations, what);
        }
        for id in ids {
            *taken.entry(id).or_default() += 1;
        }
    }
    for (id, count) in taken {
        let free = slots.get(id).copied().unwrap_or(0);
        if count > free {
            let what = format!("{count} claims want the {free} slots of {id}");
            faults.add(Rule::Reservations, what);
        }
    }
}
