//! What the ranking policy makes of the nodes that run: the currency in which moves are weighed.
//!
//! A node on an offering that can be bought costs what buying it would; the policy is asked about the others in one
//! call. Native all the way: nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};

use scheduling::Prepared;
use scheduling::problem::OfferingKey;
use scheduling::ranking::{Appraisal, AppraisedPool, PolicyUse, RankHook, UsageKey};
use state::provisioning;

use crate::candidate::Candidate;
use crate::decide::Input;

/// Effective cost an hour of a node, by what it is.
pub type EffectiveCosts = BTreeMap<UsageKey, f64>;

/// The effective cost of every candidate, and who was asked.
pub(crate) fn appraise(
    candidates: &[Candidate],
    input: &Input<'_>,
    prepared: &Prepared,
    rank: &dyn RankHook,
) -> (EffectiveCosts, Vec<PolicyUse>) {
    let mut costs = sold(candidates, prepared);
    let unsold: BTreeSet<UsageKey> = candidates
        .iter()
        .map(key)
        .filter(|it| !costs.contains_key(it))
        .collect();
    let mut uses = Vec::new();
    if !unsold.is_empty() {
        let pools = pools(candidates, &unsold, input);
        let usage = provisioning::usage(input.snapshot, input.pools);
        let appraisal = Appraisal::ask(&pools, &usage, input.options, rank);
        costs.extend(appraisal.costs);
        uses = appraisal.uses;
    }
    (costs, uses)
}

/// Gives candidates their effective cost; false where that of one is not known.
pub(crate) fn price(candidates: &mut [Candidate], costs: &EffectiveCosts) -> bool {
    let mut is_whole = true;
    for candidate in candidates {
        match costs.get(&key(candidate)) {
            Some(cost) => candidate.cost.effective_per_hour = *cost,
            None => is_whole = false,
        }
    }
    is_whole
}

/// The effective costs of what is sold, as far as candidates run on it.
fn sold(candidates: &[Candidate], prepared: &Prepared) -> EffectiveCosts {
    let wanted: BTreeSet<UsageKey> = candidates.iter().map(key).collect();
    let pools: BTreeSet<&str> = candidates.iter().map(Candidate::pool).collect();
    let mut costs = BTreeMap::new();
    for pool in pools {
        let names: BTreeSet<&str> = wanted
            .iter()
            .filter(|it| it.pool == pool)
            .map(|it| it.offering.instance_type.as_str())
            .collect();
        for sale in prepared.sales(pool).into_iter().flatten() {
            // The name decides most, and is the cheapest to ask.
            let name = sale.instance_type.name.as_str();
            let offering = sale.instance_type.offerings.get(sale.offering);
            let Some(offering) = offering.filter(|_| names.contains(name)) else {
                continue;
            };
            let key = UsageKey {
                pool: pool.to_owned(),
                offering: OfferingKey {
                    instance_type: name.to_owned(),
                    zone: offering.zone().to_owned(),
                    capacity_type: offering.capacity_type().to_owned(),
                },
            };
            if wanted.contains(&key) {
                costs.entry(key).or_insert(sale.effective_cost_per_hour);
            }
        }
    }
    costs
}

fn pools<'a>(
    candidates: &'a [Candidate],
    unsold: &BTreeSet<UsageKey>,
    input: &Input<'a>,
) -> Vec<AppraisedPool<'a>> {
    let mut pools: BTreeMap<&str, AppraisedPool<'_>> = BTreeMap::new();
    for candidate in candidates {
        let key = key(candidate);
        let Some(types) = input.types.get(candidate.pool()) else {
            continue;
        };
        if unsold.contains(&key) {
            let pool = pools
                .entry(candidate.pool())
                .or_insert_with(|| AppraisedPool {
                    node_pool: &candidate.node_pool,
                    instance_types: types,
                    offerings: BTreeSet::new(),
                });
            pool.offerings.insert(key.offering);
        }
    }
    pools.into_values().collect()
}

fn key(candidate: &Candidate) -> UsageKey {
    UsageKey {
        pool: candidate.pool().to_owned(),
        offering: OfferingKey {
            instance_type: candidate.instance_type_name().to_owned(),
            zone: candidate.zone().to_owned(),
            capacity_type: candidate.capacity_type().to_owned(),
        },
    }
}
