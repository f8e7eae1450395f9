//! Prices of the types that a replacement could become.
//!
//! Only what a launch would get counts: available, compatible, and with a slot left where reserved.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use scheduling::instance_type::{InstanceType, Offering};
use scheduling::requirements::{AllowUndefined, Requirements};
use scheduling::solution::{BestOffering, NewClaim};
use state::provisioning::PoolTypes;

use crate::candidate::TypesByPool;

/// The order in which a launch prefers capacity types.
const LAUNCH_ORDER: [&str; 3] = [
    labels::CAPACITY_TYPE_RESERVED,
    labels::CAPACITY_TYPE_SPOT,
    labels::CAPACITY_TYPE_ON_DEMAND,
];

/// Prices of all pools, looked up when first asked for.
pub struct Prices<'a> {
    types: &'a TypesByPool,
    known: RefCell<BTreeMap<&'a str, Rc<Types<'a>>>>,
}

/// The least that a thousandth of a CPU and a byte of memory cost in any pool, were a node of the best type full.
#[derive(Debug, Clone, Copy, Default)]
pub struct Floor {
    per_cpu_milli: f64,
    per_memory_byte: f64,
}

impl Floor {
    /// The floor of all pools that may buy.
    pub fn of(pools: &[PoolTypes]) -> Self {
        let (mut per_cpu_milli, mut per_memory_byte) = (f64::INFINITY, f64::INFINITY);
        for pool in pools {
            let template = &pool.node_pool.spec.template.spec.requirements;
            let wanted = Requirements::from_node_selector_requirements(template);
            let types = Types::new(&pool.instance_types);
            let choice = types.under(&wanted);
            for it in pool.instance_types.iter() {
                let cheapest = choice.cheapest(&it.name).map(|it| it.price_per_hour);
                let Some(price) = cheapest.filter(|_| wanted.intersects(&it.requirements).is_ok())
                else {
                    continue;
                };
                let allocatable = it.allocatable();
                let per = |amount: i64| price / amount.max(1) as f64;
                per_cpu_milli = per_cpu_milli.min(per(allocatable.cpu_millis()));
                per_memory_byte = per_memory_byte.min(per(allocatable.memory_bytes()));
            }
        }
        Self {
            per_cpu_milli,
            per_memory_byte,
        }
    }

    /// What so much costs at least, USD an hour.
    pub fn price_per_hour(&self, needed: &Resources) -> f64 {
        let of = |amount: i64, price: f64| {
            if amount > 0 {
                amount as f64 * price
            } else {
                0.0
            }
        };
        let cpu = of(needed.cpu_millis(), self.per_cpu_milli);
        cpu.max(of(needed.memory_bytes(), self.per_memory_byte))
    }
}

impl<'a> Prices<'a> {
    /// Prices of these types.
    pub fn of(types: &'a TypesByPool) -> Self {
        Self {
            types,
            known: RefCell::default(),
        }
    }

    pub(crate) fn pool(&self, pool: &str) -> Rc<Types<'a>> {
        let Some((pool, types)) = self.types.get_key_value(pool) else {
            return Rc::default();
        };
        let mut known = self.known.borrow_mut();
        let made = known
            .entry(pool)
            .or_insert_with(|| Rc::new(Types::new(types)));
        Rc::clone(made)
    }
}

/// Instance types of one pool, by name.
#[derive(Default)]
pub(crate) struct Types<'a> {
    by_name: BTreeMap<&'a str, Sold<'a>>,
    /// Types share few distinct offering requirements (zone by capacity type), so a claim judges each once.
    kinds: Vec<&'a Requirements>,
}

/// A type with its launchable offerings, each with the position of its requirements and of its capacity type.
struct Sold<'a> {
    instance_type: &'a InstanceType,
    offerings: Vec<(usize, usize, &'a Offering)>,
}

/// The offerings that a launch may choose from, given a claim's requirements.
pub(crate) struct Choice<'t, 'a> {
    types: &'t Types<'a>,
    allowed: Vec<bool>,
}

impl<'a> Choice<'_, 'a> {
    fn launchable(&self, name: &str) -> impl Iterator<Item = (usize, &'a Offering)> {
        let offerings = self.types.by_name.get(name).map(|it| &it.offerings);
        offerings
            .into_iter()
            .flatten()
            .filter(|(kind, ..)| self.allowed.get(*kind) == Some(&true))
            .map(|&(_, preference, offering)| (preference, offering))
    }

    /// The dearest that a launch of this type could turn out, given the order of capacity types.
    pub(crate) fn worst(&self, name: &str) -> f64 {
        let mut worst: Option<(usize, f64)> = None;
        for (preference, offering) in self.launchable(name) {
            let price = offering.price_per_hour;
            worst = match worst {
                Some((known, _)) if known < preference => worst,
                Some((known, dearest)) if known == preference => Some((
                    known,
                    if price.total_cmp(&dearest).is_gt() {
                        price
                    } else {
                        dearest
                    },
                )),
                Some(_) | None => Some((preference, price)),
            };
        }
        match worst {
            Some((preference, price)) if preference < LAUNCH_ORDER.len() => price,
            Some(_) | None => f64::INFINITY,
        }
    }

    /// The cheapest offering that a launch of this type could get.
    pub(crate) fn cheapest(&self, name: &str) -> Option<&'a Offering> {
        self.launchable(name).map(|it| it.1).min_by(|a, b| {
            a.price_per_hour
                .total_cmp(&b.price_per_hour)
                .then_with(|| a.zone().cmp(b.zone()))
        })
    }
}

impl<'a> Types<'a> {
    fn new(types: &'a [Arc<InstanceType>]) -> Self {
        let mut kinds: Vec<&Requirements> = Vec::new();
        let mut position: BTreeMap<&Requirements, (usize, usize)> = BTreeMap::new();
        let mut by_name = BTreeMap::new();
        for instance_type in types {
            let launchable = instance_type
                .offerings
                .iter()
                .filter(|it| it.is_launchable());
            let offerings = launchable
                .map(|offering| {
                    let (kind, preference) =
                        *position.entry(&offering.requirements).or_insert_with(|| {
                            kinds.push(&offering.requirements);
                            (kinds.len() - 1, preference(offering))
                        });
                    (kind, preference, offering)
                })
                .collect();
            let sold = Sold {
                instance_type,
                offerings,
            };
            by_name.insert(instance_type.name.as_str(), sold);
        }
        Self { by_name, kinds }
    }

    /// What these requirements leave.
    pub(crate) fn under(&self, requirements: &Requirements) -> Choice<'_, 'a> {
        let allows = |kind: &&Requirements| {
            requirements
                .compatible(kind, AllowUndefined::WellKnown)
                .is_ok()
        };
        Choice {
            types: self,
            allowed: self.kinds.iter().map(allows).collect(),
        }
    }

    /// Whether a launch might fall back from spot to on-demand.
    pub(crate) fn may_be_spot_or_on_demand(&self, claim: &NewClaim) -> bool {
        let kinds = self.capacity_types(claim);
        kinds.contains(labels::CAPACITY_TYPE_SPOT)
            && kinds.contains(labels::CAPACITY_TYPE_ON_DEMAND)
    }

    fn capacity_types(&self, claim: &NewClaim) -> BTreeSet<String> {
        let choice = self.under(&claim.requirements);
        let kinds: BTreeSet<usize> = claim
            .instance_types
            .iter()
            .flat_map(|name| choice.launchable(name))
            .map(|it| it.0)
            .collect();
        let name = |preference: usize| LAUNCH_ORDER.get(preference).map(|it| (*it).to_owned());
        kinds.into_iter().filter_map(name).collect()
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
    pub(crate) fn settle(&self, claim: &mut NewClaim) {
        claim.capacity_types = self.capacity_types(claim);
        let first = claim.instance_types.first().unwrap_or_default().to_owned();
        let Some(offering) = self.under(&claim.requirements).cheapest(&first) else {
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

fn preference(offering: &Offering) -> usize {
    let capacity_type = offering.capacity_type();
    let position = LAUNCH_ORDER.iter().position(|it| *it == capacity_type);
    position.unwrap_or(LAUNCH_ORDER.len())
}

/// Keeps the best so many types.
pub(crate) fn truncate(claim: &mut NewClaim, keep: usize) {
    claim.instance_types.truncate(keep);
}
