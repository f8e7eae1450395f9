//! Prices of the types that a replacement could become.
//!
//! Only what a launch would get counts: available, compatible, and with a slot left where reserved.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::labels;
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::requirements::{AllowUndefined, Requirements};
use scheduling::solution::{BestOffering, NewClaim};

use crate::candidate::TypesByPool;

/// The order in which a launch prefers capacity types.
const LAUNCH_ORDER: [&str; 3] = [
    labels::CAPACITY_TYPE_RESERVED,
    labels::CAPACITY_TYPE_SPOT,
    labels::CAPACITY_TYPE_ON_DEMAND,
];

/// Instance types of one pool, by name.
pub(crate) struct Types<'a>(BTreeMap<&'a str, &'a Arc<InstanceType>>);

impl<'a> Types<'a> {
    pub(crate) fn of(types: &'a TypesByPool, pool: &str) -> Self {
        Self(
            types
                .get(pool)
                .into_iter()
                .flat_map(|it| it.iter())
                .map(|it| (it.name.as_str(), it))
                .collect(),
        )
    }

    fn launchable(
        &self,
        name: &str,
        requirements: &Requirements,
    ) -> impl Iterator<Item = &'a Offering> {
        let offerings = self
            .0
            .get(name)
            .map(|it| it.offerings.as_slice())
            .unwrap_or_default();
        offerings.iter().filter(move |it| {
            it.is_launchable()
                && requirements
                    .compatible(&it.requirements, AllowUndefined::WellKnown)
                    .is_ok()
        })
    }

    /// The dearest that a launch of this type could turn out, given the order of capacity types.
    pub(crate) fn worst(&self, name: &str, requirements: &Requirements) -> f64 {
        LAUNCH_ORDER
            .into_iter()
            .find_map(|capacity_type| {
                self.launchable(name, requirements)
                    .filter(|it| it.capacity_type() == capacity_type)
                    .map(|it| it.price_per_hour)
                    .max_by(f64::total_cmp)
            })
            .unwrap_or(f64::INFINITY)
    }

    /// The cheapest offering that a launch of this type could get.
    pub(crate) fn cheapest(&self, name: &str, requirements: &Requirements) -> Option<&'a Offering> {
        self.launchable(name, requirements).min_by(|a, b| {
            a.price_per_hour
                .total_cmp(&b.price_per_hour)
                .then_with(|| a.zone().cmp(b.zone()))
        })
    }

    /// Whether a launch might fall back from spot to on-demand.
    pub(crate) fn may_be_spot_or_on_demand(&self, claim: &NewClaim) -> bool {
        let kinds = self.capacity_types(claim);
        kinds.contains(labels::CAPACITY_TYPE_SPOT)
            && kinds.contains(labels::CAPACITY_TYPE_ON_DEMAND)
    }

    fn capacity_types(&self, claim: &NewClaim) -> BTreeSet<String> {
        claim
            .instance_types
            .iter()
            .flat_map(|name| self.launchable(name, &claim.requirements))
            .map(|it| it.capacity_type().to_owned())
            .collect()
    }

    /// How many types, best first, satisfy every `minValues`; `None` when all of them do not.
    pub(crate) fn needed_for_min_values(&self, claim: &NewClaim) -> Option<usize> {
        let wanted: Vec<(&str, u32)> = claim
            .requirements
            .iter()
            .filter_map(|it| Some((it.key(), it.min_values?)))
            .collect();
        if wanted.is_empty() {
            return Some(0);
        }
        let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (count, name) in (1..).zip(&claim.instance_types) {
            for &(key, _) in &wanted {
                seen.entry(key)
                    .or_default()
                    .extend(self.values(name, key, &claim.requirements));
            }
            let holds = |&(key, min): &(&str, u32)| {
                seen.get(key)
                    .is_some_and(|it| u32::try_from(it.len()).is_ok_and(|len| len >= min))
            };
            if wanted.iter().all(holds) {
                return Some(count);
            }
        }
        None
    }

    fn values(&self, name: &str, key: &str, requirements: &Requirements) -> Vec<String> {
        if key == labels::INSTANCE_TYPE {
            return vec![name.to_owned()];
        }
        let allowed = requirements.get(key);
        self.0
            .get(name)
            .and_then(|it| it.requirements.find(key))
            .map(|it| {
                it.values()
                    .filter(|value| allowed.has(value))
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Brings the claim's summary in line with the types that are left.
    pub(crate) fn settle(&self, claim: &mut NewClaim) {
        claim.capacity_types = self.capacity_types(claim);
        let first = claim.instance_types.first().cloned().unwrap_or_default();
        let Some(offering) = self.cheapest(&first, &claim.requirements) else {
            return;
        };
        let same = claim.best.instance_type == first && claim.best.zone == offering.zone();
        claim.best = BestOffering {
            zone: offering.zone().to_owned(),
            capacity_type: offering.capacity_type().to_owned(),
            price_per_hour: offering.price_per_hour,
            effective_cost_per_hour: if same {
                claim.best.effective_cost_per_hour
            } else {
                offering.price_per_hour
            },
            runner_up: claim.best.runner_up.take(),
            instance_type: first,
        };
    }
}

/// Keeps the best so many types.
pub(crate) fn truncate(claim: &mut NewClaim, keep: usize) {
    claim.instance_types.truncate(keep);
}
