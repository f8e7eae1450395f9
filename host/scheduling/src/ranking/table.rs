//! Offerings as columns, and the dictionary of their words.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use serde::{Deserialize, Serialize};

use super::{ClaimOperator, ClaimRequirement, NEVER_SECONDS};
use crate::instance_type::{InstanceType, Offering};
use crate::market::{CapacityType, Markets};
use crate::requirements::{Operator, Requirements};

/// The symbol that stands for none.
pub const NO_SYMBOL: u32 = u32::MAX;
const MIB_MILLIS: i64 = 1024 * 1024 * 1000;

/// All purchasable offerings of a round, one row each; columns have equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferingTable {
    /// The words.
    pub symbols: Vec<String>,
    /// Symbol of the type's name.
    pub instance_type: Vec<u32>,
    /// Symbol of the family.
    pub family: Vec<u32>,
    /// Generation of the family; 0 when unknown.
    pub generation: Vec<u32>,
    /// Symbol of who makes the CPU.
    pub cpu_manufacturer: Vec<u32>,
    /// Symbol of the zone.
    pub zone: Vec<u32>,
    /// Symbol of the architecture.
    pub arch: Vec<u32>,
    /// 0 on-demand, 1 spot, 2 reserved.
    pub capacity_type: Vec<u8>,
    /// USD an hour after overlays.
    pub price: Vec<f64>,
    /// USD an hour of the on-demand offering of the same type; 0 when unknown.
    pub on_demand_price: Vec<f64>,
    /// CPU.
    pub cpu_milli: Vec<u32>,
    /// Memory.
    pub memory_mib: Vec<u32>,
    /// Accelerators of any kind.
    pub gpus: Vec<u32>,
    /// Most pods.
    pub max_pods: Vec<u32>,
    /// Free slots of a reservation.
    pub reservation_slots: Vec<u32>,
    /// Insufficient-capacity answers in the window.
    pub ice_count: Vec<u32>,
    /// Seconds since the latest; all ones when there was none.
    pub ice_age: Vec<u32>,
    /// Interruptions per node and 30 days; negative when unknown.
    pub interruption_rate: Vec<f64>,
    /// Effective hourly cost so far.
    pub prior: Vec<f64>,
    /// Columns without a field.
    pub extra: Vec<ExtraColumn>,
}

/// A named column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtraColumn {
    /// Name.
    pub name: String,
    /// Values.
    pub values: ExtraValues,
}

/// Values of a named column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExtraValues {
    /// Numbers.
    Floats(Vec<f64>),
    /// Counts.
    Ints(Vec<u32>),
    /// Symbols.
    Syms(Vec<u32>),
    /// Small numbers.
    Bytes(Vec<u8>),
}

/// Where a row comes from: positions in the list of types and in the type's offerings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableRow {
    /// Position of the type.
    pub instance_type: usize,
    /// Position of the offering.
    pub offering: usize,
}

/// Builds the dictionary of a table.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    ids: BTreeMap<String, u32>,
    words: Vec<String>,
}

impl Symbols {
    /// The symbol of a word; the empty word has none.
    pub fn intern(&mut self, word: &str) -> u32 {
        if word.is_empty() {
            return NO_SYMBOL;
        }
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        let id = u32::try_from(self.words.len()).unwrap_or(NO_SYMBOL);
        self.ids.insert(word.to_owned(), id);
        self.words.push(word.to_owned());
        id
    }

    /// The symbol of a word that is known.
    pub fn find(&self, word: &str) -> Option<u32> {
        self.ids.get(word).copied()
    }

    /// Keys and values as pairs of symbols.
    pub fn pairs<'a>(
        &mut self,
        labels: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) -> Vec<(u32, u32)> {
        let labels = labels.into_iter();
        let pair = |(key, value): (&String, &String)| (self.intern(key), self.intern(value));
        labels.map(pair).collect()
    }

    /// The words in the order of their symbols.
    pub fn into_words(self) -> Vec<String> {
        self.words
    }

    /// Requirements as policies see them.
    pub fn requirements(&mut self, requirements: &Requirements) -> Vec<ClaimRequirement> {
        let mut out = Vec::with_capacity(requirements.len());
        for requirement in requirements.iter() {
            let key = self.intern(requirement.key());
            let min_values = requirement.min_values.unwrap_or(0);
            let mut push = |operator, values| {
                out.push(ClaimRequirement {
                    key,
                    operator,
                    values,
                    min_values,
                });
            };
            if let Some(gte) = requirement.gte() {
                push(
                    ClaimOperator::Greater,
                    vec![self.intern(&gte.saturating_sub(1).to_string())],
                );
            }
            if let Some(lte) = requirement.lte() {
                push(
                    ClaimOperator::Less,
                    vec![self.intern(&lte.saturating_add(1).to_string())],
                );
            }
            let operator = match requirement.operator() {
                Operator::In => ClaimOperator::InSet,
                Operator::NotIn => ClaimOperator::NotIn,
                Operator::DoesNotExist => ClaimOperator::DoesNotExist,
                _ if requirement.gte().is_some() || requirement.lte().is_some() => continue,
                _ => ClaimOperator::Exists,
            };
            let values = requirement.values().map(|v| self.intern(v)).collect();
            push(operator, values);
        }
        out
    }
}

impl OfferingTable {
    /// The launchable offerings of the types, in order, with the origin of each row.
    pub fn build(types: &[Arc<InstanceType>], symbols: &mut Symbols) -> (Self, Vec<TableRow>) {
        Self::build_of(types, symbols, |_, offering| offering.available)
    }

    /// As [`Self::build`], of the offerings that the judge picks.
    pub(super) fn build_of(
        types: &[Arc<InstanceType>],
        symbols: &mut Symbols,
        mut is_picked: impl FnMut(usize, &Offering) -> bool,
    ) -> (Self, Vec<TableRow>) {
        let offerings = types.iter().map(|t| t.offerings.len()).sum();
        let mut table = Self::with_capacity(offerings);
        let mut rows = Vec::with_capacity(offerings);
        let mut markets = Markets::default();
        let mut zones: Vec<u32> = Vec::new();
        for (type_index, instance_type) in types.iter().enumerate() {
            let of_type = TypeColumns::read(instance_type, symbols, &mut markets);
            for (offering_index, offering) in instance_type.offerings.iter().enumerate() {
                if !is_picked(type_index, offering) {
                    continue;
                }
                table.push_type(&of_type);
                let number = markets.number(offering);
                let unseen = markets.iter().skip(zones.len());
                zones.extend(unseen.map(|market| symbols.intern(&market.zone)));
                table.zone.push(zones[number]);
                let capacity_type = markets.get(number).capacity_type;
                table.capacity_type.push(capacity_type_code(capacity_type));
                table.price.push(offering.price_per_hour);
                table.prior.push(offering.price_per_hour);
                let on_demand = offering
                    .on_demand_price_per_hour
                    .or(of_type.on_demand_price)
                    .unwrap_or(0.0);
                table.on_demand_price.push(on_demand);
                table.reservation_slots.push(offering.reservation_capacity);
                table.ice_count.push(offering.ice_count);
                table
                    .ice_age
                    .push(offering.ice_age_seconds.unwrap_or(NEVER_SECONDS));
                table
                    .interruption_rate
                    .push(offering.interruption_rate.unwrap_or(-1.0));
                rows.push(TableRow {
                    instance_type: type_index,
                    offering: offering_index,
                });
            }
        }
        (table, rows)
    }

    fn with_capacity(rows: usize) -> Self {
        Self {
            symbols: Vec::new(),
            instance_type: Vec::with_capacity(rows),
            family: Vec::with_capacity(rows),
            generation: Vec::with_capacity(rows),
            cpu_manufacturer: Vec::with_capacity(rows),
            zone: Vec::with_capacity(rows),
            arch: Vec::with_capacity(rows),
            capacity_type: Vec::with_capacity(rows),
            price: Vec::with_capacity(rows),
            on_demand_price: Vec::with_capacity(rows),
            cpu_milli: Vec::with_capacity(rows),
            memory_mib: Vec::with_capacity(rows),
            gpus: Vec::with_capacity(rows),
            max_pods: Vec::with_capacity(rows),
            reservation_slots: Vec::with_capacity(rows),
            ice_count: Vec::with_capacity(rows),
            ice_age: Vec::with_capacity(rows),
            interruption_rate: Vec::with_capacity(rows),
            prior: Vec::with_capacity(rows),
            extra: Vec::new(),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.price.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.price.is_empty()
    }

    fn push_type(&mut self, columns: &TypeColumns) {
        self.instance_type.push(columns.name);
        self.family.push(columns.family);
        self.generation.push(columns.generation);
        self.cpu_manufacturer.push(columns.cpu_manufacturer);
        self.arch.push(columns.arch);
        self.cpu_milli.push(columns.cpu_milli);
        self.memory_mib.push(columns.memory_mib);
        self.gpus.push(columns.gpus);
        self.max_pods.push(columns.max_pods);
    }
}

struct TypeColumns {
    name: u32,
    family: u32,
    generation: u32,
    cpu_manufacturer: u32,
    arch: u32,
    cpu_milli: u32,
    memory_mib: u32,
    gpus: u32,
    max_pods: u32,
    on_demand_price: Option<f64>,
}

impl TypeColumns {
    fn read(instance_type: &InstanceType, symbols: &mut Symbols, markets: &mut Markets) -> Self {
        let label = |key: &str| {
            instance_type
                .requirements
                .find(key)
                .filter(|r| !r.is_complement())
                .and_then(|r| r.values().next())
                .unwrap_or("")
        };
        let name_family = instance_type.name.split('.').next().unwrap_or("");
        let family = Some(label(labels::INSTANCE_FAMILY)).filter(|f| !f.is_empty());
        let capacity = &instance_type.capacity;
        Self {
            name: symbols.intern(&instance_type.name),
            family: symbols.intern(family.unwrap_or(name_family)),
            generation: instance_type.generation(),
            cpu_manufacturer: symbols.intern(label(labels::INSTANCE_CPU_MANUFACTURER)),
            arch: symbols.intern(label(labels::ARCH)),
            cpu_milli: saturate(capacity.get(labels::RESOURCE_CPU)),
            memory_mib: saturate(capacity.get(labels::RESOURCE_MEMORY) / MIB_MILLIS),
            gpus: accelerators(capacity),
            max_pods: saturate(capacity.get(labels::RESOURCE_PODS) / 1000),
            on_demand_price: instance_type
                .offerings
                .iter()
                .find(|o| {
                    let number = markets.number(o);
                    markets.get(number).is_on_demand
                })
                .map(|o| o.price_per_hour),
        }
    }
}

/// Accelerators of any kind and maker in a resource list.
pub fn accelerators(resources: &Resources) -> u32 {
    let kinds = labels::ACCELERATOR_RESOURCES.iter();
    saturate(kinds.map(|name| resources.get(name) / 1000).sum())
}

pub(crate) fn saturate(amount: i64) -> u32 {
    u32::try_from(amount.max(0)).unwrap_or(u32::MAX)
}

/// A resource list's memory in MiB.
pub(crate) fn memory_mib(resources: &Resources) -> u32 {
    saturate(resources.get(labels::RESOURCE_MEMORY) / MIB_MILLIS)
}

pub(super) const fn capacity_type_code(capacity_type: CapacityType) -> u8 {
    match capacity_type {
        CapacityType::OnDemand => 0,
        CapacityType::Spot => 1,
        CapacityType::Reserved => 2,
    }
}
