//! Which of the ranked offerings a fleet request may name.
//!
//! Pure. Filters only take away; the order stays the caller's. Answers to Karpenter's
//! `pkg/providers/instance/filter/filter.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{CapacityType, NodeClaim, labels};
use cloudprovider::CloudProviderError;
use scheduling::instance_type::InstanceType;
use scheduling::ranking::RankedOffering;

/// Types in one fleet request.
pub(super) const INSTANCE_TYPES_MAX: usize = 60;

/// A type with the offerings of it that may be launched, best first.
#[derive(Debug, Clone)]
pub(super) struct LaunchableType {
    pub(super) instance_type: Arc<InstanceType>,
    pub(super) offerings: Vec<RankedOffering>,
}

/// Names of a type and a zone of it.
pub(super) type TypeAndZone = (Arc<str>, Arc<str>);

/// Those of an offering.
pub(super) fn type_and_zone(offering: &RankedOffering) -> TypeAndZone {
    let RankedOffering {
        instance_type,
        zone,
        ..
    } = offering;
    (Arc::clone(instance_type), Arc::clone(zone))
}

/// Groups offerings by type; types stand in the order of their best offering.
pub(super) fn candidates(
    offerings: &[RankedOffering],
    instance_types: &[Arc<InstanceType>],
) -> Vec<LaunchableType> {
    let by_name: BTreeMap<&str, &Arc<InstanceType>> = instance_types
        .iter()
        .map(|instance_type| (instance_type.name.as_str(), instance_type))
        .collect();
    let mut positions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut candidates: Vec<LaunchableType> = Vec::new();
    for offering in offerings {
        let Some(instance_type) = by_name.get(&*offering.instance_type) else {
            continue;
        };
        let position = *positions
            .entry(instance_type.name.as_str())
            .or_insert_with(|| {
                candidates.push(LaunchableType {
                    instance_type: Arc::clone(instance_type),
                    offerings: Vec::new(),
                });
                candidates.len() - 1
            });
        candidates[position].offerings.push(offering.clone());
    }
    candidates
}

/// Drops metal sizes and accelerators unless nothing else is left: pods that wanted them would have said so.
pub(super) fn without_exotic(candidates: Vec<LaunchableType>) -> Vec<LaunchableType> {
    let (exotic, plain): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|candidate| is_exotic(&candidate.instance_type));
    if plain.is_empty() { exotic } else { plain }
}

/// Whether it is a metal size or has accelerators.
pub(super) fn is_exotic(instance_type: &InstanceType) -> bool {
    let size = instance_type
        .name
        .split_once('.')
        .map_or("", |(_, size)| size);
    let has_accelerator = labels::EXOTIC_RESOURCES
        .iter()
        .any(|resource| instance_type.capacity.get(resource) > 0);
    size.contains("metal") || has_accelerator
}

/// Drops spot offerings that cost more than the cheapest on-demand one.
pub(super) fn without_dear_spot(candidates: Vec<LaunchableType>) -> Vec<LaunchableType> {
    let of_capacity_type = |capacity_type: CapacityType| {
        let all = candidates.iter().flat_map(|candidate| &candidate.offerings);
        all.filter(move |offering| offering.capacity_type == capacity_type)
    };
    let cheapest = of_capacity_type(CapacityType::OnDemand)
        .map(|offering| offering.effective_cost_per_hour)
        .min_by(f64::total_cmp);
    let Some(cheapest) = cheapest else {
        return candidates;
    };
    if of_capacity_type(CapacityType::Spot).next().is_none() {
        return candidates;
    }
    let is_fine = |offering: &RankedOffering| {
        offering.capacity_type != CapacityType::Spot || offering.effective_cost_per_hour <= cheapest
    };
    keep_offerings(candidates, is_fine)
}

/// Keeps the offerings that satisfy `keep`, and the types that still have one.
pub(super) fn keep_offerings(
    mut candidates: Vec<LaunchableType>,
    keep: impl Fn(&RankedOffering) -> bool,
) -> Vec<LaunchableType> {
    for candidate in &mut candidates {
        candidate.offerings.retain(&keep);
    }
    candidates.retain(|candidate| !candidate.offerings.is_empty());
    candidates
}

/// Cuts to what a fleet takes, unless that would break the claim's minValues.
pub(super) fn truncate(
    mut candidates: Vec<LaunchableType>,
    claim: &NodeClaim,
    is_best_effort: bool,
) -> Result<Vec<LaunchableType>, CloudProviderError> {
    candidates.truncate(INSTANCE_TYPES_MAX);
    if is_best_effort {
        return Ok(candidates);
    }
    for requirement in &claim.spec.requirements {
        let Some(min_values) = requirement
            .min_values
            .and_then(|min| usize::try_from(min).ok())
        else {
            continue;
        };
        let found: BTreeSet<&str> = candidates
            .iter()
            .filter_map(|candidate| candidate.instance_type.requirements.find(&requirement.key))
            .flat_map(scheduling::requirements::Requirement::values)
            .collect();
        if found.len() < min_values {
            return Err(CloudProviderError::InsufficientCapacity(format!(
                "minValues {min_values} of {} is not met by the {} types a fleet request takes",
                requirement.key,
                candidates.len(),
            )));
        }
    }
    Ok(candidates)
}

/// Whether the claim wants a breadth of types, so that none may be filtered away for thrift.
pub(super) fn has_min_values(claim: &NodeClaim) -> bool {
    claim
        .spec
        .requirements
        .iter()
        .any(|requirement| requirement.min_values.is_some())
}
