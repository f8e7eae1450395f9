//! The instance types of one shape of class: built once, and again only as far as what they depend on has changed.
//!
//! It asks nobody; who keeps them is `instance_type.rs`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use scheduling::instance_type::InstanceType;

use super::base::Base;
use super::facts::{InstanceTypeFacts, SharedLists};
use super::reported::ReportedMemory;
use super::shape::ClassShape;
use super::{RegionTypes, capacity, incompatibility, requirements, volumes};
use crate::kubelet::expressions::KubeletExpressions;
use crate::offering::{OfferingSources, Places, offerings};
use crate::unavailable_offerings::UnavailableStamp;

/// What a built list depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Revision {
    pub(super) catalogue: u64,
    pub(super) memory: u64,
    pub(super) prices: u64,
    pub(super) reservations: u64,
    pub(super) unavailable: (u64, i64),
    pub(super) interruptions: u64,
}

/// What the offerings of one type depend on, prices and reservations aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OfferingStamp {
    unavailable: UnavailableStamp,
    interruptions: u64,
}

/// The types of one shape, and what they were built of.
#[derive(Debug)]
pub(super) struct CachedTypes {
    /// Of which all was built.
    pub(super) revision: Revision,
    /// Memory that they were built with.
    pub(super) reported_memory: ReportedMemory,
    pub(super) bases: Arc<[Base]>,
    /// By the index of the type.
    pub(super) stamps: Vec<OfferingStamp>,
    /// In the order of names.
    pub(super) built: Arc<[Arc<InstanceType>]>,
    /// When somebody last asked for them; unused ones are dropped.
    pub(super) used_at: Timestamp,
}

/// Builds the types of a shape, and takes over of the previous ones what nothing has changed.
pub(super) fn build(
    catalogue: &RegionTypes,
    shape: &ClassShape,
    sources: &OfferingSources<'_>,
    revision: Revision,
    previous: Option<CachedTypes>,
) -> CachedTypes {
    let previous = previous.filter(|entry| entry.revision.catalogue == revision.catalogue);
    // A new price or reservation may touch any type; a mark or a rate touches those whose stamp has moved.
    let known_stamps = previous
        .as_ref()
        .filter(|entry| {
            entry.revision.prices == revision.prices
                && entry.revision.reservations == revision.reservations
        })
        .map(|entry| entry.stamps.clone())
        .unwrap_or_default();
    let (bases, types) = match previous {
        Some(entry) if entry.revision.memory == revision.memory => {
            (entry.bases, entry.built.to_vec())
        }
        Some(entry) => {
            let types = with_reports(catalogue, shape, &entry);
            (entry.bases, types)
        }
        None => described(catalogue, shape),
    };
    let stamps: Vec<OfferingStamp> = types
        .iter()
        .map(|instance_type| OfferingStamp {
            unavailable: sources.unavailable.stamp(&instance_type.name, sources.now),
            interruptions: sources.interruptions.stamp(&instance_type.name),
        })
        .collect();
    let places = Places::of(shape, sources);
    let built = bases
        .iter()
        .zip(types)
        .enumerate()
        .map(|(index, (base, instance_type))| {
            if known_stamps.get(index) == stamps.get(index) {
                return instance_type;
            }
            let mut changed = Arc::unwrap_or_clone(instance_type);
            changed.offerings = offerings(&changed.name, base, &places, sources);
            Arc::new(changed)
        })
        .collect();
    CachedTypes {
        revision,
        reported_memory: shape.reported_memory.clone(),
        bases,
        stamps,
        built,
        used_at: sources.now,
    }
}

/// The types with what nodes have reported of them since.
fn with_reports(
    catalogue: &RegionTypes,
    shape: &ClassShape,
    before: &CachedTypes,
) -> Vec<Arc<InstanceType>> {
    let expressions = KubeletExpressions::read(&shape.kubelet.expressions).unwrap_or_default();
    let types = before.built.iter().map(|instance_type| {
        let name = &instance_type.name;
        let bytes_of = |reported: &ReportedMemory| reported.bytes(name);
        let is_news = bytes_of(&shape.reported_memory) != bytes_of(&before.reported_memory);
        let info = catalogue.types.get(name).filter(|_| is_news);
        let settled = info.and_then(|info| {
            let shape = on_type(name, info, shape, &expressions).ok()?;
            Some(capacity::capacity_and_overhead(name, info, &shape))
        });
        let Some((capacity, overhead)) = settled else {
            return Arc::clone(instance_type);
        };
        Arc::new(InstanceType {
            capacity,
            overhead,
            ..InstanceType::clone(instance_type)
        })
    });
    types.collect()
}

/// The types as the class sees them, with no offerings yet, and what those are made of.
fn described(catalogue: &RegionTypes, shape: &ClassShape) -> (Arc<[Base]>, Vec<Arc<InstanceType>>) {
    // Those that cannot be read keep their class from being ready.
    let expressions = KubeletExpressions::read(&shape.kubelet.expressions).unwrap_or_default();
    let served = served_zones(catalogue, shape);
    let (bases, types): (Vec<_>, Vec<_>) = catalogue
        .types
        .iter()
        .map(|(name, info)| {
            let sold_in = catalogue.zones.get(name);
            let zones = sold_in.and_then(|it| served.get(it)).map(Arc::clone);
            let zones = zones.unwrap_or_default();
            match on_type(name, info, shape, &expressions) {
                Ok(shape) => describe(name, info, zones, &shape),
                Err(error) => {
                    tracing::debug!(instance_type = name, error, "no kubelet can be set up");
                    let (base, instance_type) = describe(name, info, zones, shape);
                    let base = Base {
                        is_compatible: false,
                        ..base
                    };
                    (base, instance_type)
                }
            }
        })
        .unzip();
    (Arc::from(bases), types)
}

/// By the zones that a type is sold in: those of them in which the class has a subnet. There are few such lists.
fn served_zones<'a>(
    catalogue: &'a RegionTypes,
    shape: &ClassShape,
) -> BTreeMap<&'a Arc<[String]>, Arc<[String]>> {
    let mut lists = SharedLists::new();
    let mut served = BTreeMap::new();
    for sold_in in catalogue.zones.values() {
        served.entry(sold_in).or_insert_with(|| {
            let zones = sold_in.iter();
            let zones = zones.filter(|zone| shape.zones.contains_key(*zone));
            lists.of(zones.cloned().collect())
        });
    }
    served
}

/// The shape as it is on a type.
fn on_type<'a>(
    name: &str,
    info: &InstanceTypeFacts,
    shape: &'a ClassShape,
    expressions: &KubeletExpressions,
) -> Result<Cow<'a, ClassShape>, String> {
    if expressions.is_empty() {
        return Ok(Cow::Borrowed(shape));
    }
    let settled = capacity::settle(name, info, shape, expressions)?;
    Ok(Cow::Owned(shape.settled(&settled)))
}

fn describe(
    name: &str,
    info: &InstanceTypeFacts,
    zones: Arc<[String]>,
    shape: &ClassShape,
) -> (Base, Arc<InstanceType>) {
    let (capacity, overhead) = capacity::capacity_and_overhead(name, info, shape);
    let instance_type = InstanceType {
        name: name.to_owned(),
        requirements: requirements::requirements(name, info, &zones, shape),
        offerings: Vec::new(),
        capacity,
        overhead,
        volume_attachment_limits: volumes::attachment_limits(info, shape),
    };
    let base = Base {
        zones,
        capacity_types: info.capacity_types,
        is_compatible: incompatibility(name, info, shape).is_none(),
    };
    (base, Arc::new(instance_type))
}
