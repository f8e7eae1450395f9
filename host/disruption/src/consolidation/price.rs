//! Prices of the types that a replacement could become, as the ranking policy reckons.
//!
//! Only what a launch would get counts: what the policy does not exclude, available, compatible, and with a slot left
//! where reserved. List prices stand beside the effective costs for those who report.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use apis::{CapacityType, labels};
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::ranking::{PremiumMax, premium_of_node};
use scheduling::requirements::{AllowUndefined, Requirements};
use scheduling::solution::{BestOffering, NewClaim};
use scheduling::{Prepared, Sale};

/// Place of an offering's capacity type among those that cost the same: what a launch tries first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LaunchRank {
    Reserved,
    Spot,
    OnDemand,
    /// Its word is not known.
    Unknown,
}

impl LaunchRank {
    fn of(offering: &Offering) -> Self {
        match offering.capacity_type() {
            Some(CapacityType::Reserved) => Self::Reserved,
            Some(CapacityType::Spot) => Self::Spot,
            Some(CapacityType::OnDemand) => Self::OnDemand,
            None => Self::Unknown,
        }
    }

    fn capacity_type(self) -> Option<CapacityType> {
        match self {
            Self::Reserved => Some(CapacityType::Reserved),
            Self::Spot => Some(CapacityType::Spot),
            Self::OnDemand => Some(CapacityType::OnDemand),
            Self::Unknown => None,
        }
    }
}

/// Prices of all pools, worked out when first asked for.
#[derive(Default)]
pub(crate) struct PoolPrices {
    known: RefCell<BTreeMap<String, Rc<Types>>>,
}

impl PoolPrices {
    /// Types that the pool may buy; none where it takes no part.
    pub(crate) fn pool(&self, prepared: &Prepared, pool: &str) -> Rc<Types> {
        let mut known = self.known.borrow_mut();
        if let Some(types) = known.get(pool) {
            return Rc::clone(types);
        }
        let sales = prepared.sales(pool).into_iter().flatten();
        let types = Rc::new(Types {
            premium_max: prepared.premium_max(pool),
            ..Types::new(sales)
        });
        known.insert(pool.to_owned(), Rc::clone(&types));
        types
    }
}

/// Instance types of one pool, by name.
pub(crate) struct Types {
    /// Bound on how much dearer a policy may make a launch.
    premium_max: PremiumMax,
    by_name: BTreeMap<String, Sold>,
    /// Types share few distinct offering requirements (zone by capacity type), so a claim judges each once.
    kinds: Vec<Requirements>,
}

/// A type with what can be bought of it.
struct Sold {
    instance_type: Arc<InstanceType>,
    offerings: Vec<PricedOffering>,
}

/// An offering with what it costs.
#[derive(Debug, Clone, Copy)]
struct PricedOffering {
    /// Position of its requirements.
    kind: usize,
    rank: LaunchRank,
    /// Position in the type's offerings.
    offering: usize,
    effective_cost_per_hour: f64,
}

/// An offering of a choice.
#[derive(Clone, Copy)]
pub(crate) struct Priced<'t> {
    pub(crate) offering: &'t Offering,
    pub(crate) effective_cost_per_hour: f64,
    rank: LaunchRank,
}

impl Priced<'_> {
    /// What a launch tries first comes first.
    fn compare(&self, other: &Self) -> Ordering {
        let (own, others) = (self.effective_cost_per_hour, other.effective_cost_per_hour);
        let by_cost = own.total_cmp(&others);
        by_cost.then_with(|| self.rank.cmp(&other.rank))
    }
}

/// The offerings that a launch may choose from, given a claim's requirements.
pub(crate) struct Choice<'t> {
    types: &'t Types,
    allowed: Vec<bool>,
    /// List price from which on a launch drops an offering.
    price_max: f64,
}

impl<'t> Choice<'t> {
    fn launchable(&self, name: &str) -> impl Iterator<Item = Priced<'t>> {
        let sold = self.types.by_name.get(name);
        sold.into_iter().flat_map(|sold| {
            let offerings = sold.offerings.iter();
            let allowed = offerings.filter(|it| self.allowed.get(it.kind) == Some(&true));
            allowed
                .filter_map(|it| {
                    Some(Priced {
                        offering: sold.instance_type.offerings.get(it.offering)?,
                        effective_cost_per_hour: it.effective_cost_per_hour,
                        rank: it.rank,
                    })
                })
                .filter(|it| it.offering.price_per_hour <= self.price_max)
        })
    }

    /// The choice among what a launch of the claim would not drop for its price.
    fn within_premium(self, claim: &NewClaim) -> Self {
        let bound = premium_of_node(self.types.premium_max, &claim.requirements);
        if !bound.is_on() {
            return self;
        }
        let names = claim.instance_types.iter();
        let prices = names.flat_map(|it| self.launchable(it));
        let prices = prices.map(|it| it.offering.price_per_hour);
        let cheapest = prices.min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
        Self {
            price_max: bound.most(cheapest),
            ..self
        }
    }

    /// The dearest that a launch of this type could turn out, given the order of capacity types.
    pub(crate) fn worst(&self, name: &str) -> f64 {
        let mut worst: Option<(LaunchRank, f64)> = None;
        for offering in self.launchable(name) {
            let cost = offering.effective_cost_per_hour;
            worst = match worst {
                Some((known, _)) if known < offering.rank => worst,
                Some((known, dearest)) if known == offering.rank => {
                    Some((known, dearest.max(cost)))
                }
                Some(_) | None => Some((offering.rank, cost)),
            };
        }
        let known = worst.filter(|(rank, _)| *rank != LaunchRank::Unknown);
        known.map_or(f64::INFINITY, |(_, cost)| cost)
    }

    /// The cheapest offering that a launch of this type could get.
    pub(crate) fn cheapest(&self, name: &str) -> Option<Priced<'t>> {
        self.launchable(name).min_by(|a, b| {
            let by_zone = || a.offering.zone().cmp(&b.offering.zone());
            a.compare(b).then_with(by_zone)
        })
    }
}

impl Types {
    fn new<'a>(sales: impl Iterator<Item = Sale<'a>>) -> Self {
        let mut kinds: Vec<Requirements> = Vec::new();
        let mut position: BTreeMap<&Requirements, (usize, LaunchRank)> = BTreeMap::new();
        let mut by_name: BTreeMap<String, Sold> = BTreeMap::new();
        for sale in sales {
            let Some(offering) = sale.instance_type.offerings.get(sale.offering) else {
                continue;
            };
            let (kind, rank) = *position.entry(&offering.requirements).or_insert_with(|| {
                kinds.push(offering.requirements.clone());
                (kinds.len() - 1, LaunchRank::of(offering))
            });
            let name = sale.instance_type.name.as_str();
            if !by_name.contains_key(name) {
                let sold = Sold {
                    instance_type: Arc::clone(sale.instance_type),
                    offerings: Vec::new(),
                };
                by_name.insert(name.to_owned(), sold);
            }
            if let Some(sold) = by_name.get_mut(name) {
                sold.offerings.push(PricedOffering {
                    kind,
                    rank,
                    offering: sale.offering,
                    effective_cost_per_hour: sale.effective_cost_per_hour,
                });
            }
        }
        Self {
            premium_max: PremiumMax::OFF,
            by_name,
            kinds,
        }
    }

    /// Offerings that a launch of the claim may choose from.
    pub(crate) fn choice(&self, claim: &NewClaim) -> Choice<'_> {
        self.under(&claim.requirements).within_premium(claim)
    }

    fn under(&self, requirements: &Requirements) -> Choice<'_> {
        let allows = |kind: &Requirements| {
            requirements
                .compatible(kind, AllowUndefined::WellKnown)
                .is_ok()
        };
        Choice {
            types: self,
            allowed: self.kinds.iter().map(allows).collect(),
            price_max: f64::INFINITY,
        }
    }

    /// Whether a launch might fall back from one of spot and on-demand to the other.
    pub(crate) fn may_be_spot_or_on_demand(&self, claim: &NewClaim) -> bool {
        let kinds = self.capacity_types(claim);
        kinds.contains(&CapacityType::Spot) && kinds.contains(&CapacityType::OnDemand)
    }

    /// The capacity type that a launch would try first: that of the offering which costs least.
    pub(crate) fn preferred_capacity_type(&self, claim: &NewClaim) -> Option<CapacityType> {
        let choice = self.choice(claim);
        let cheapest = claim
            .instance_types
            .iter()
            .filter_map(|it| choice.cheapest(it));
        cheapest.min_by(Priced::compare)?.rank.capacity_type()
    }

    fn capacity_types(&self, claim: &NewClaim) -> BTreeSet<CapacityType> {
        let choice = self.choice(claim);
        let names = claim.instance_types.iter();
        let launchable = names.flat_map(|name| choice.launchable(name));
        launchable
            .filter_map(|it| it.rank.capacity_type())
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
        for (count, name) in (1..).zip(claim.instance_types.iter()) {
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
        self.by_name
            .get(name)
            .and_then(|it| it.instance_type.requirements.find(key))
            .map(|it| {
                it.values()
                    .filter(|value| allowed.has(value))
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Brings the claim's summary in line with the types that are left.
    pub(crate) fn refresh_summary(&self, claim: &mut NewClaim) {
        claim.capacity_types = self.capacity_types(claim);
        let choice = self.choice(claim);
        let best = claim.instance_types.iter().filter_map(|name| {
            let cheapest = choice.cheapest(name)?;
            Some((name, cheapest))
        });
        // The first of the cheapest: types stand best first, and ties keep that order.
        let best = best.min_by(|a, b| {
            let (a, b) = (a.1.effective_cost_per_hour, b.1.effective_cost_per_hour);
            a.total_cmp(&b)
        });
        let Some((name, best)) = best else { return };
        claim.best = BestOffering {
            zone: best.offering.zone().map(str::to_owned),
            capacity_type: best.offering.capacity_type(),
            price_per_hour: best.offering.price_per_hour,
            effective_cost_per_hour: best.effective_cost_per_hour,
            runner_up: claim.best.runner_up.take(),
            instance_type: name.to_owned(),
        };
    }
}

#[cfg(test)]
mod tests {
    use scheduling::instance_type::Overhead;
    use scheduling::requirements::{Operator, Requirement};

    use super::*;
    use crate::consolidation::cheaper::retain_below;

    fn instance_type(name: &str, price_per_hour: f64) -> Arc<InstanceType> {
        let in_zone = Requirement::new(labels::TOPOLOGY_ZONE, Operator::In, ["a"]);
        let on_demand = Requirement::new(labels::CAPACITY_TYPE, Operator::In, ["on-demand"]);
        Arc::new(InstanceType {
            name: name.to_owned(),
            requirements: Requirements::new(),
            offerings: vec![Offering::new(
                [in_zone, on_demand].into_iter().collect(),
                price_per_hour,
            )],
            capacity: apis::resources::Resources::new(),
            overhead: Overhead::default(),
            volume_attachment_limits: BTreeMap::new(),
        })
    }

    #[test]
    fn what_a_launch_keeps_for_min_values_counts_whatever_it_costs() {
        let known = [instance_type("cheap", 0.1), instance_type("dear", 0.4)];
        let sales = known.iter().map(|it| Sale {
            instance_type: it,
            offering: 0,
            effective_cost_per_hour: 0.05,
        });
        let types = Types {
            premium_max: "100%".parse().unwrap(),
            ..Types::new(sales)
        };
        for (min_values, is_kept) in [(None, false), (Some(2), true)] {
            let mut named = Requirement::new(labels::INSTANCE_TYPE, Operator::Exists, [""; 0]);
            named.min_values = min_values;
            let claim = NewClaim {
                requirements: [named].into_iter().collect(),
                instance_types: ["cheap", "dear"].map(str::to_owned).into_iter().collect(),
                ..NewClaim::default()
            };
            let choice = types.choice(&claim);
            assert!(choice.cheapest("cheap").is_some(), "{min_values:?}");
            assert_eq!(choice.cheapest("dear").is_some(), is_kept, "{min_values:?}");
        }
    }

    #[test]
    fn where_none_is_cheap_enough_the_cheapest_is_told_wherever_it_stands() {
        let known = [instance_type("dear", 0.4), instance_type("cheap", 0.1)];
        let types = Types::new(known.iter().map(|it| Sale {
            instance_type: it,
            offering: 0,
            effective_cost_per_hour: it.offerings[0].price_per_hour,
        }));
        for (names, expected) in [
            (vec!["dear", "cheap"], 0.1),
            (vec!["dear"], 0.4),
            (vec!["sold out"], f64::INFINITY),
            (vec![], f64::INFINITY),
        ] {
            let mut claim = NewClaim {
                instance_types: names.iter().map(|&it| it.to_owned()).collect(),
                ..NewClaim::default()
            };
            let told = retain_below(&mut claim, &types, 0.05);
            assert_eq!(told, Err(expected), "{names:?}");
        }
    }
}
