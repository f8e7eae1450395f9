//! NodeOverlays: what instance types cost and hold once overlays are applied, and which overlays conflict.
//!
//! A pure function over all pools; watching, validating and conditions belong to a controller. Answers to Karpenter's
//! `pkg/controllers/nodeoverlay` and its overlay decorator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::labels;
use apis::nodeoverlay::{NodeOverlay, PriceChange};
use apis::resources::Resources;
use apis::{NodeClaim, NodePool, NodeSelectorRequirementWithMinValues, validation};

use crate::instance_type::{Availability, InstanceType};
use crate::requirements::{AllowUndefined, Operator, Requirement, Requirements};

/// A pool with the types it may buy, as the provider tells.
pub type PoolCatalogue = (Arc<NodePool>, Arc<[Arc<InstanceType>]>);

/// Instance types as the overlays change them.
#[derive(Debug, Clone, Default)]
pub struct Overlaid {
    /// The types of each pool, in the order given; untouched ones are shared with what was given.
    pub instance_types: BTreeMap<String, Arc<[Arc<InstanceType>]>>,
    /// Overlays that were not applied, anywhere, because another of the same weight touches the same.
    pub conflicts: BTreeSet<String>,
    /// Types with a price of an overlay's, by pool.
    pub priced: BTreeMap<String, BTreeSet<String>>,
    /// Types with resources of an overlay's, by pool.
    pub extended: BTreeMap<String, BTreeSet<String>>,
}

/// Verdict on an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlayVerdict {
    /// It is in force.
    Applied,
    /// Another of the same weight touches the same, so it is not applied at all.
    Conflict,
    /// It breaks a rule that the CRD cannot check; not applied.
    Invalid(String),
}

impl Overlaid {
    /// Says on a claim of the pool what overlays changed about the types it may become.
    pub fn mark(&self, claim: &mut NodeClaim, pool: &str) {
        let mut types = claim.spec.requirements.iter();
        let types = types.find(|it| it.key == labels::INSTANCE_TYPE);
        let Some(types) = types.map(|it| &it.values) else {
            return;
        };
        let marks = [
            (&self.priced, labels::PRICE_OVERLAY_APPLIED_ANNOTATION),
            (&self.extended, labels::CAPACITY_OVERLAY_APPLIED_ANNOTATION),
        ];
        let is_marked = |(of_pools, _): &(&BTreeMap<String, BTreeSet<String>>, _)| {
            let changed = of_pools.get(pool);
            changed.is_some_and(|changed| types.iter().any(|it| changed.contains(it)))
        };
        let annotations = marks.into_iter().filter(is_marked);
        let annotations: Vec<_> = annotations.map(|(_, key)| key.to_owned()).collect();
        let all = claim.metadata.annotations.get_or_insert_default();
        all.extend(annotations.into_iter().map(|key| (key, "true".to_owned())));
    }
}

/// Judges overlays against all pools at once, by their names.
pub fn judge(
    overlays: &[NodeOverlay],
    pools: &[PoolCatalogue],
) -> BTreeMap<String, OverlayVerdict> {
    let name = |it: &NodeOverlay| it.metadata.name.clone().unwrap_or_default();
    let mut verdicts = BTreeMap::new();
    let mut valid = Vec::new();
    for overlay in overlays {
        let faults = validation::node_overlay(overlay);
        if faults.is_empty() {
            verdicts.insert(name(overlay), OverlayVerdict::Applied);
            valid.push(overlay.clone());
        } else {
            let message = validation::message(&faults);
            verdicts.insert(name(overlay), OverlayVerdict::Invalid(message));
        }
    }
    for conflict in apply(&valid, pools).conflicts {
        verdicts.insert(conflict, OverlayVerdict::Conflict);
    }
    verdicts
}

/// The overlays that are in force.
pub fn accepted(
    overlays: &[NodeOverlay],
    verdicts: &BTreeMap<String, OverlayVerdict>,
) -> Vec<NodeOverlay> {
    let is_applied = |it: &&NodeOverlay| {
        let name = it.metadata.name.as_deref().unwrap_or_default();
        verdicts.get(name) == Some(&OverlayVerdict::Applied)
    };
    overlays.iter().filter(is_applied).cloned().collect()
}

/// Changes that the overlays so far make to one type in one pool.
#[derive(Debug, Default)]
struct OverlayChange {
    /// By position of the offering: the change, and the least weight that asked for one.
    prices: BTreeMap<usize, (PriceChange, i32)>,
    capacity: Resources,
    /// Resources of the overlay applied last, and its weight.
    latest: Option<(BTreeSet<String>, i32)>,
}

/// Where an overlay applies: pool, type, and the offerings that suit it.
type OverlayMatch = ((usize, usize), Vec<usize>);

/// Applies overlays to the types of all pools: the heaviest first, among equals the last by name first.
pub fn apply(overlays: &[NodeOverlay], pools: &[PoolCatalogue]) -> Overlaid {
    let mut order: Vec<&NodeOverlay> = overlays.iter().collect();
    order.sort_by(|a, b| (weight(b), &b.metadata.name).cmp(&(weight(a), &a.metadata.name)));
    let mut changes: BTreeMap<(usize, usize), OverlayChange> = BTreeMap::new();
    let mut overlaid = Overlaid::default();
    for overlay in order {
        let matches = matches(overlay, pools);
        let is_conflicting = matches.iter().any(|(at, offerings)| {
            changes
                .get(at)
                .is_some_and(|it| it.conflicts(overlay, offerings))
        });
        if is_conflicting {
            let name = overlay.metadata.name.clone().unwrap_or_default();
            overlaid.conflicts.insert(name);
            continue;
        }
        for (at, offerings) in matches {
            changes.entry(at).or_default().merge(overlay, &offerings);
        }
    }
    for (pool_index, (pool, types)) in pools.iter().enumerate() {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let changed = types.iter().enumerate().map(|(index, instance_type)| {
            match changes.get(&(pool_index, index)) {
                Some(change) => Arc::new(change.applied_to(instance_type)),
                None => Arc::clone(instance_type),
            }
        });
        let changed: Arc<[Arc<InstanceType>]> = changed.collect();
        let names = |wanted: fn(&OverlayChange) -> bool| -> BTreeSet<String> {
            let of_pool = changes.range((pool_index, 0)..(pool_index + 1, 0));
            of_pool
                .filter(|(_, change)| wanted(change))
                .map(|((_, index), _)| types[*index].name.clone())
                .collect()
        };
        overlaid
            .priced
            .insert(name.clone(), names(|it| !it.prices.is_empty()));
        overlaid
            .extended
            .insert(name.clone(), names(|it| !it.capacity.is_empty()));
        overlaid.instance_types.insert(name, changed);
    }
    overlaid
}

fn weight(overlay: &NodeOverlay) -> i32 {
    overlay.spec.weight.unwrap_or(0)
}

fn matches(overlay: &NodeOverlay, pools: &[PoolCatalogue]) -> Vec<OverlayMatch> {
    let asked: Vec<NodeSelectorRequirementWithMinValues> = overlay
        .spec
        .requirements
        .iter()
        .cloned()
        .map(Into::into)
        .collect();
    let asked = Requirements::from_node_selector_requirements(&asked);
    let mut matches = Vec::new();
    for (pool_index, (pool, types)) in pools.iter().enumerate() {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let mut of_pool = Requirements::from_labels(&pool.spec.template.metadata.labels);
        of_pool.add(Requirement::new(labels::NODEPOOL, Operator::In, [name]));
        for (index, instance_type) in types.iter().enumerate() {
            let mut offered = of_pool.clone();
            offered.extend_with(&instance_type.requirements);
            if offered.compatible(&asked, AllowUndefined::None).is_err() {
                continue;
            }
            let offerings: Vec<usize> = (instance_type.offerings.iter().enumerate())
                .filter(|(_, offering)| asked.intersects(&offering.requirements).is_ok())
                .map(|(offering, _)| offering)
                .collect();
            if !offerings.is_empty() {
                matches.push(((pool_index, index), offerings));
            }
        }
    }
    matches
}

impl OverlayChange {
    fn conflicts(&self, overlay: &NodeOverlay, offerings: &[usize]) -> bool {
        let weight = weight(overlay);
        let is_priced = overlay.spec.price_change().is_some()
            && offerings.iter().any(|offering| {
                let known = self.prices.get(offering);
                known.is_some_and(|(_, least)| *least == weight)
            });
        let is_extended = self.latest.as_ref().is_some_and(|(resources, latest)| {
            *latest == weight
                && overlay
                    .spec
                    .capacity
                    .keys()
                    .any(|it| resources.contains(it))
        });
        is_priced || is_extended
    }

    fn merge(&mut self, overlay: &NodeOverlay, offerings: &[usize]) {
        let weight = weight(overlay);
        if let Some(price) = overlay.spec.price_change() {
            for offering in offerings {
                self.prices
                    .entry(*offering)
                    .and_modify(|(_, least)| *least = weight)
                    .or_insert((price, weight));
            }
        }
        let capacity = Resources::from_list(&overlay.spec.capacity);
        if capacity.is_empty() {
            return;
        }
        for (name, amount) in capacity.iter() {
            if !self.capacity.has(name) {
                self.capacity.set(name, amount);
            }
        }
        let resources = overlay.spec.capacity.keys().cloned().collect();
        self.latest = Some((resources, weight));
    }

    fn applied_to(&self, instance_type: &InstanceType) -> InstanceType {
        let mut changed = instance_type.clone();
        for (index, (price, _)) in &self.prices {
            let offering = &mut changed.offerings[*index];
            let lacks_price = offering.availability == Availability::NoPrice;
            let told = (!lacks_price).then_some(offering.price_per_hour);
            if let Some(adjusted) = price.applied_to(told) {
                offering.price_per_hour = adjusted;
                if lacks_price {
                    offering.availability = Availability::Now;
                }
            }
        }
        for (name, amount) in self.capacity.iter() {
            changed.capacity.set(name, amount);
        }
        changed
    }
}
