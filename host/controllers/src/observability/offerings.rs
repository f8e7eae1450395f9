//! Gauges of what instance types have, and how they are sold, as the NodePools see them. Answers to
//! `pkg/controllers/metrics` of the AWS provider and to the gauges of its `pkg/providers/instancetype`.

use std::collections::BTreeMap;

use apis::CapacityType;
use apis::labels::{INSTANCE_CPU, INSTANCE_MEMORY};
use scheduling::instance_type::InstanceType;

use super::{Observation, Tell};
use crate::shell::metrics::labels::{CapacityTypeLabel, InstanceTypeLabel, ZoneLabel};

type LabelsOfOffering<V = String> = (InstanceTypeLabel<V>, CapacityTypeLabel<V>, ZoneLabel<V>);

const MEBIBYTE: f64 = 1_048_576.0;

pub(super) fn cpu_cores(observation: &Observation<'_>, emit: &mut Tell<'_, InstanceTypeLabel>) {
    each_type(observation, |it| {
        if let Some(cores) = number(it, INSTANCE_CPU) {
            emit(InstanceTypeLabel(&it.name), cores);
        }
    });
}

/// Of the machine, before the hypervisor takes its part.
pub(super) fn memory_bytes(observation: &Observation<'_>, emit: &mut Tell<'_, InstanceTypeLabel>) {
    each_type(observation, |it| {
        if let Some(mebibytes) = number(it, INSTANCE_MEMORY) {
            emit(InstanceTypeLabel(&it.name), mebibytes * MEBIBYTE);
        }
    });
}

fn number(of: &InstanceType, label: &str) -> Option<f64> {
    of.requirements.find(label)?.values().next()?.parse().ok()
}

/// Every type once, whichever NodePools see it.
fn each_type(observation: &Observation<'_>, each: impl FnMut(&InstanceType)) {
    let types = observation.known.sold_types.get();
    let all = types.values().flat_map(|it| it.iter());
    let by_name: BTreeMap<&str, &InstanceType> =
        all.map(|it| (it.name.as_str(), it.as_ref())).collect();
    by_name.into_values().for_each(each);
}

pub(super) fn available(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfOffering>) {
    each_offering(observation, |labels, offered| {
        emit(labels, f64::from(u8::from(offered.is_available)));
    });
}

pub(super) fn price(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfOffering>) {
    each_offering(observation, |labels, offered| {
        emit(labels, offered.price_per_hour);
    });
}

/// Facts of an offering as NodePools see it.
#[derive(Debug, Default)]
struct OfferingSeen {
    is_available: bool,
    price_per_hour: f64,
}

/// Every offering once: it can be bought where one NodePool may buy it. Zones without a reservation show that there is
/// none.
fn each_offering(
    observation: &Observation<'_>,
    mut each: impl FnMut(LabelsOfOffering<&str>, &OfferingSeen),
) {
    let types = observation.known.sold_types.get();
    let shows_reserved = observation
        .known
        .shell
        .settings
        .feature_gates
        .reserved_capacity;
    // A map for each type, as there are tens of thousands of offerings and names of types begin alike.
    let mut by_name: BTreeMap<&str, Vec<&InstanceType>> = BTreeMap::new();
    for instance_type in types.values().flat_map(|it| it.iter()) {
        by_name
            .entry(&instance_type.name)
            .or_default()
            .push(instance_type);
    }
    for (name, seen) in by_name {
        for ((capacity_type, zone), offered) in offerings(&seen, shows_reserved) {
            let labels = (
                InstanceTypeLabel(name),
                CapacityTypeLabel(capacity_type),
                ZoneLabel(zone),
            );
            each(labels, &offered);
        }
    }
}

/// Offerings of one type, as NodePools see it, by capacity type and zone.
fn offerings<'a>(
    seen: &[&'a InstanceType],
    shows_reserved: bool,
) -> BTreeMap<(&'a str, &'a str), OfferingSeen> {
    let mut offerings: BTreeMap<(&str, &str), OfferingSeen> = BTreeMap::new();
    for offering in seen.iter().flat_map(|it| &it.offerings) {
        let zone = offering.zone().unwrap_or_default();
        let capacity_type = CapacityType::word(offering.capacity_type());
        let offered = offerings.entry((capacity_type, zone)).or_default();
        offered.is_available |= offering.is_available();
        offered.price_per_hour = offering.price_per_hour;
        if shows_reserved {
            let reserved = (CapacityType::Reserved.as_str(), zone);
            offerings.entry(reserved).or_default();
        }
    }
    offerings
}
