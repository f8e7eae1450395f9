//! Instance types and requirements as the columns of a round.

use std::sync::Arc;

use apis::resources::Resources;
use apis::{CapacityType, labels};

use hooks::columns::saturated;
use hooks::ranking::{ClaimOperator, ClaimRequirement, NEVER_SECONDS, OfferingTable, Symbols};

use crate::instance_type::{InstanceType, Offering};
use crate::market::Markets;
use crate::requirements::{Operator, Requirements};

const MIB_MILLIS: i64 = 1024 * 1024 * 1000;

/// Where a row comes from: positions in the list of types and in the type's offerings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TableRow {
    /// Position of the type.
    pub instance_type: usize,
    /// Position of the offering.
    pub offering: usize,
}

/// The available offerings of the types, those of full reservations among them, in order, with the origin of each row.
pub(crate) fn offering_table(
    types: &[Arc<InstanceType>],
    symbols: &mut Symbols,
) -> (OfferingTable, Vec<TableRow>) {
    offering_table_of(types, symbols, |_, offering| offering.is_available())
}

/// The table of the offerings that the judge picks, and where each of its rows is found.
pub(crate) fn offering_table_of(
    types: &[Arc<InstanceType>],
    symbols: &mut Symbols,
    mut is_picked: impl FnMut(usize, &Offering) -> bool,
) -> (OfferingTable, Vec<TableRow>) {
    let offerings = types.iter().map(|t| t.offerings.len()).sum();
    let mut table = OfferingTable::with_capacity(offerings);
    let mut rows = Vec::with_capacity(offerings);
    let mut markets = Markets::default();
    let mut zones: Vec<u32> = Vec::new();
    for (type_index, instance_type) in types.iter().enumerate() {
        let of_type = TypeColumns::read(instance_type, symbols, &mut markets);
        for (offering_index, offering) in instance_type.offerings.iter().enumerate() {
            if !is_picked(type_index, offering) {
                continue;
            }
            of_type.push_to(&mut table);
            let number = markets.number(offering);
            let unseen = markets.iter().skip(zones.len());
            zones.extend(unseen.map(|market| {
                let zone = market.zone.as_deref();
                symbols.intern(zone.unwrap_or_default())
            }));
            table.zone.push(zones[number]);
            let capacity_type = markets.get(number).capacity_type;
            table
                .capacity_type
                .push(CapacityType::code_of(capacity_type));
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

/// Requirements as policies see them.
pub(crate) fn claim_requirements(
    requirements: &Requirements,
    symbols: &mut Symbols,
) -> Vec<ClaimRequirement> {
    let mut out = Vec::with_capacity(requirements.len());
    for requirement in requirements.iter() {
        let key = symbols.intern(requirement.key());
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
                vec![symbols.intern(&gte.saturating_sub(1).to_string())],
            );
        }
        if let Some(lte) = requirement.lte() {
            push(
                ClaimOperator::Less,
                vec![symbols.intern(&lte.saturating_add(1).to_string())],
            );
        }
        let operator = match requirement.operator() {
            Operator::In => ClaimOperator::InSet,
            Operator::NotIn => ClaimOperator::NotIn,
            Operator::DoesNotExist => ClaimOperator::DoesNotExist,
            Operator::Exists | Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte => {
                if requirement.gte().is_some() || requirement.lte().is_some() {
                    continue;
                }
                ClaimOperator::Exists
            }
        };
        let values = requirement.values().map(|v| symbols.intern(v)).collect();
        push(operator, values);
    }
    out
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
            cpu_milli: saturated(capacity.cpu_millis()),
            memory_mib: memory_mib(capacity),
            gpus: accelerators(capacity),
            max_pods: saturated(capacity.count(labels::RESOURCE_PODS)),
            on_demand_price: instance_type
                .offerings
                .iter()
                .find(|o| {
                    let number = markets.number(o);
                    markets.get(number).capacity_type == Some(CapacityType::OnDemand)
                })
                .map(|o| o.price_per_hour),
        }
    }

    fn push_to(&self, table: &mut OfferingTable) {
        table.instance_type.push(self.name);
        table.family.push(self.family);
        table.generation.push(self.generation);
        table.cpu_manufacturer.push(self.cpu_manufacturer);
        table.arch.push(self.arch);
        table.cpu_milli.push(self.cpu_milli);
        table.memory_mib.push(self.memory_mib);
        table.gpus.push(self.gpus);
        table.max_pods.push(self.max_pods);
    }
}

/// Accelerators of any kind and maker in a resource list.
pub fn accelerators(resources: &Resources) -> u32 {
    let kinds = labels::ACCELERATOR_RESOURCES.iter();
    let count: i64 = kinds.map(|name| resources.count(name)).sum();
    saturated(count)
}

/// A resource list's memory in MiB.
pub(crate) fn memory_mib(resources: &Resources) -> u32 {
    saturated(resources.get(labels::RESOURCE_MEMORY) / MIB_MILLIS)
}
