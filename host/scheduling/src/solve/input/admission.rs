//! Rows that a pool may buy by its own requirements, before any policy is asked.
//!
//! Depends on the pool's template and its instance types only, so that it outlives a round. Answers to Karpenter's
//! `scheduling/nodeclaimtemplate.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use apis::CapacityType;
use locks::lock;

use crate::instance_type::InstanceType;
use crate::market::Markets;
use crate::problem::{Pool, ReservedMode};
use crate::requirements::Requirements;

/// A pool's types and offerings that its own requirements admit.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) template: Requirements,
    pub(crate) instance_types: Arc<[Arc<InstanceType>]>,
    has_reserved: bool,
    /// By type, then offering.
    pub(crate) rows: Vec<AdmittedRow>,
    pub(super) markets: Markets,
    /// What could ever be bought of a label, by key.
    domains: Mutex<BTreeMap<String, Arc<BTreeSet<String>>>>,
}

/// An offering that the pool may buy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmittedRow {
    /// Position of the type in the pool.
    pub(crate) type_index: usize,
    /// Position in the type's offerings.
    pub(crate) offering: usize,
    /// Number of the market.
    pub(crate) market: usize,
}

impl Admission {
    pub(crate) fn new(pool: &Pool, template: Requirements, reserved: ReservedMode) -> Self {
        let instance_types = Arc::clone(&pool.instance_types);
        let (rows, markets) = admitted(&instance_types, &template, reserved);
        Self {
            template,
            instance_types,
            has_reserved: reserved != ReservedMode::Off,
            rows,
            markets,
            domains: Mutex::default(),
        }
    }

    /// Whether it is what `new` would make of these.
    pub(super) fn is_of(
        &self,
        pool: &Pool,
        template: &Requirements,
        reserved: ReservedMode,
    ) -> bool {
        Arc::ptr_eq(&self.instance_types, &pool.instance_types)
            && self.has_reserved == (reserved != ReservedMode::Off)
            && self.template == *template
    }

    /// Whether it is what the same pool has for its types now.
    pub(super) fn replaces(&self, old: &Self) -> bool {
        self.has_reserved == old.has_reserved
            && self.template == old.template
            && !Arc::ptr_eq(&self.instance_types, &old.instance_types)
    }

    /// The values that nodes of the pool could have for a label, available now or not.
    pub(crate) fn domains(&self, key: &str) -> Arc<BTreeSet<String>> {
        let mut known = lock(&self.domains);
        if let Some(domains) = known.get(key) {
            return Arc::clone(domains);
        }
        let domains = Arc::new(domains(&self.instance_types, &self.template, key));
        known.insert(key.to_owned(), Arc::clone(&domains));
        domains
    }
}

fn admitted(
    instance_types: &[Arc<InstanceType>],
    template: &Requirements,
    reserved: ReservedMode,
) -> (Vec<AdmittedRow>, Markets) {
    let mut rows = Vec::new();
    let mut markets = Markets::default();
    // By market; how many slots a reservation has left is the offering's own matter.
    let mut verdicts: Vec<bool> = Vec::new();
    for (type_index, instance_type) in instance_types.iter().enumerate() {
        if !template.meets(&instance_type.requirements) {
            continue;
        }
        for (offering, sold) in instance_type.offerings.iter().enumerate() {
            let number = markets.number(sold);
            let market = markets.get(number);
            let is_reserved = market.capacity_type == Some(CapacityType::Reserved);
            if number == verdicts.len() {
                let is_off = reserved == ReservedMode::Off && is_reserved;
                verdicts.push(!is_off && template.meets(&sold.requirements));
            }
            let has_slots = !is_reserved || sold.reservation_capacity > 0;
            if sold.is_available() && has_slots && verdicts[number] {
                rows.push(AdmittedRow {
                    type_index,
                    offering,
                    market: number,
                });
            }
        }
    }
    (rows, markets)
}

fn domains(
    instance_types: &[Arc<InstanceType>],
    template: &Requirements,
    key: &str,
) -> BTreeSet<String> {
    let of_template = template.get(key);
    let mut values: BTreeSet<&str> = BTreeSet::new();
    for instance_type in instance_types {
        let own = std::iter::once(&instance_type.requirements);
        let offered = instance_type.offerings.iter().map(|o| &o.requirements);
        for requirement in own.chain(offered).filter_map(|r| r.find(key)) {
            if !requirement.is_complement() {
                values.extend(requirement.values());
            }
        }
    }
    values.retain(|value| of_template.has(value));
    if values.is_empty() && !of_template.is_complement() {
        values.extend(of_template.values());
    }
    values.into_iter().map(str::to_owned).collect()
}
