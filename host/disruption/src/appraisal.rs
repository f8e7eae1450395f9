//! Cost of the nodes that run, as the ranking policy reckons: the currency in which moves are weighed.
//!
//! A node on an offering that can be bought costs what buying it would; the policy is asked about the others in one
//! call. Native all the way: nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};

use planning::provisioning;
use scheduling::Prepared;
use scheduling::problem::OfferingKey;
use scheduling::ranking::{Appraisal, AppraisedPool, PolicyUse, UsageKey};

use crate::candidate::{Candidate, TypesByPool};
use crate::command::Cost;
use crate::simulation::SimulationInput;

/// Effective cost an hour of a node, by what it is.
pub(crate) type EffectiveCosts = BTreeMap<UsageKey, f64>;

/// Effective costs of the candidates, by offering and by node.
pub(crate) struct Costs {
    by_offering: EffectiveCosts,
    /// Effective cost an hour, by name of the node.
    by_node: BTreeMap<String, f64>,
}

impl Costs {
    /// Asks for the effective cost of every candidate that cannot be read off what is sold; who was asked.
    pub(crate) fn ask(
        candidates: &[Candidate],
        world: &SimulationInput<'_>,
        prepared: &Prepared,
    ) -> (Self, Vec<PolicyUse>) {
        let mut costs = sold(candidates, prepared);
        let unsold: BTreeSet<UsageKey> = candidates
            .iter()
            .map(key)
            .filter(|it| !costs.contains_key(it))
            .collect();
        let mut uses = Vec::new();
        if !unsold.is_empty() {
            let pools = pools(candidates, &unsold, world.types);
            let usage = provisioning::usage(world.snapshot, world.types);
            let appraisal = Appraisal::ask(&pools, &usage, world.options, world.rank);
            costs.extend(appraisal.costs);
            uses = appraisal.uses;
        }
        (Self::of_nodes(candidates, costs), uses)
    }

    /// Costs that an earlier loop was told; `None` where it was not told of every candidate.
    pub(crate) fn known(candidates: &[Candidate], costs: &EffectiveCosts) -> Option<Self> {
        let is_known = |it: &Candidate| costs.contains_key(&key(it));
        let is_whole = candidates.iter().all(is_known);
        is_whole.then(|| Self::of_nodes(candidates, costs.clone()))
    }

    fn of_nodes(candidates: &[Candidate], by_offering: EffectiveCosts) -> Self {
        let cost = |it: &Candidate| {
            let cost = by_offering.get(&key(it))?;
            Some((it.name().to_owned(), *cost))
        };
        Self {
            by_node: candidates.iter().filter_map(cost).collect(),
            by_offering,
        }
    }

    /// Cost of a node; its list price stands in where the policy is silent.
    pub(crate) fn of(&self, candidate: &Candidate) -> Cost {
        let listed = Cost::at_list_price(candidate.price_per_hour);
        let effective = self.by_node.get(candidate.name());
        Cost {
            effective_per_hour: effective.copied().unwrap_or(listed.effective_per_hour),
            ..listed
        }
    }

    /// For the next loop.
    pub(crate) fn by_offering(&self) -> &EffectiveCosts {
        &self.by_offering
    }
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
                    zone: offering.zone().map(str::to_owned),
                    capacity_type: offering.capacity_type(),
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
    types: &'a TypesByPool,
) -> Vec<AppraisedPool<'a>> {
    let mut pools: BTreeMap<&str, AppraisedPool<'_>> = BTreeMap::new();
    for candidate in candidates {
        let key = key(candidate);
        let Some(types) = types.get(candidate.pool()) else {
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
            instance_type: candidate
                .instance_type_name()
                .unwrap_or_default()
                .to_owned(),
            zone: candidate.zone().map(str::to_owned),
            capacity_type: candidate.capacity_type(),
        },
    }
}
