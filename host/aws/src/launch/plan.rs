//! Plan of a launch: capacity type, types, reservations and their order.
//!
//! Pure. Answers to Karpenter's `pkg/providers/instance/instance.go` (launchInstance).

use std::collections::BTreeMap;

use apis::{CapacityType, NodeClaim, labels};
use cloudprovider::{CloudProviderError, LaunchRequest};
use scheduling::ranking::RankedOffering;

use super::LaunchContext;
use super::claim::{has_annotation, requirements, tenancy};
use super::filter::{
    LaunchableType, TypeAndZone, candidates, has_min_values, keep_offerings, truncate,
    type_and_zone, without_dear_spot, without_exotic,
};
use super::reserved::{ByOffering, Reservation, reserve};
use crate::options::AwsOptions;

/// With fewer types than this EC2 often has none of them.
const FEW_TYPES: usize = 5;

/// Request of one launch.
#[derive(Debug)]
pub(super) struct LaunchPlan {
    pub(super) capacity_type: CapacityType,
    /// Types that the fleet may choose from, best first.
    pub(super) candidates: Vec<LaunchableType>,
    /// `default` or `dedicated`.
    pub(super) tenancy: &'static str,
    /// Reservations by type and zone; empty unless the capacity type is reserved.
    pub(super) reservations: ByOffering,
    /// Place of an offering in the caller's order, by type and zone; none where EC2 may choose by price.
    ranks: Option<BTreeMap<TypeAndZone, usize>>,
}

impl LaunchPlan {
    /// The plan for a claim, or why nothing can be asked for.
    pub(super) fn of(context: &LaunchContext<'_>) -> Result<Self, CloudProviderError> {
        let LaunchContext {
            request, options, ..
        } = context;
        let claim = &request.node_claim;
        let mut chosen = candidates(&request.offerings, &request.instance_types);
        let capacity_type = capacity_type(request, options)?;
        let mut reservations = BTreeMap::new();
        if capacity_type == CapacityType::Reserved {
            (chosen, reservations) = reserve(chosen, claim);
        }
        if !has_min_values(claim) {
            chosen = without_dear_spot(without_exotic(chosen));
        }
        let is_kind = |kind: CapacityType| {
            chosen
                .iter()
                .flat_map(|c| &c.offerings)
                .any(|o| o.capacity_type == kind)
        };
        // The filters may have taken every spot offering away.
        let capacity_type = if is_kind(capacity_type) {
            capacity_type
        } else {
            CapacityType::OnDemand
        };
        let chosen = keep_offerings(chosen, |offering| offering.capacity_type == capacity_type);
        let candidates = truncate(chosen, claim, options.min_values_best_effort)?;
        if candidates.is_empty() {
            let within = context
                .placement_group
                .as_ref()
                .map(|group| format!(" in {}", group.id))
                .unwrap_or_default();
            return Err(CloudProviderError::InsufficientCapacity(format!(
                "no offering of the claim can be launched{within}"
            )));
        }
        let has_overlay = has_annotation(claim, labels::PRICE_OVERLAY_APPLIED_ANNOTATION);
        let of_kind = request
            .offerings
            .iter()
            .filter(|offering| offering.capacity_type == capacity_type);
        let ranks = of_kind
            .enumerate()
            .map(|(rank, offering)| (type_and_zone(offering), rank));
        let is_prioritized = request.order_differs_from_price || has_overlay;
        Ok(Self {
            capacity_type,
            candidates,
            tenancy: tenancy(claim),
            reservations,
            ranks: is_prioritized.then(|| ranks.collect()),
        })
    }

    /// How many types are left of a launch on demand whose claim allows spot, where they are few.
    pub(super) fn falls_back_on(&self, claim: &NodeClaim) -> Option<usize> {
        let types = self.candidates.len();
        let is_on_demand = self.capacity_type == CapacityType::OnDemand;
        let allowed = requirements(claim)
            .get(labels::CAPACITY_TYPE)
            .has(labels::CAPACITY_TYPE_SPOT);
        (is_on_demand && allowed && types < FEW_TYPES).then_some(types)
    }

    /// The fewest pods that may land in a zone, by which its subnet is debited.
    pub(super) fn pods_by_zone(&self) -> BTreeMap<String, i64> {
        let mut pods: BTreeMap<String, i64> = BTreeMap::new();
        for candidate in &self.candidates {
            let capacity = &candidate.instance_type.capacity;
            let capacity = capacity.count(labels::RESOURCE_PODS);
            for offering in &candidate.offerings {
                let least = pods.entry(offering.zone.to_string()).or_insert(capacity);
                *least = capacity.min(*least);
            }
        }
        pods
    }

    /// Names of the types, best first.
    pub(super) fn instance_type_names(&self) -> impl Iterator<Item = &str> {
        self.candidates
            .iter()
            .map(|candidate| candidate.instance_type.name.as_str())
    }

    /// The reservation behind an offering of this plan.
    pub(super) fn reservation(&self, instance_type: &str, zone: &str) -> Option<&Reservation> {
        if self.reservations.is_empty() {
            return None;
        }
        let place: TypeAndZone = (instance_type.into(), zone.into());
        self.reservations.get(&place)
    }

    /// The id of that reservation.
    pub(super) fn reservation_of(&self, instance_type: Option<&str>, zone: &str) -> Option<&str> {
        let reservation = self.reservation(instance_type?, zone);
        reservation.map(|it| it.id.as_str())
    }

    /// Whether EC2 must keep the order rather than choose by price.
    pub(super) fn is_prioritized(&self) -> bool {
        self.ranks.is_some()
    }

    /// Lower goes first: the place in the caller's order, or the price.
    pub(super) fn priority(&self, offering: &RankedOffering) -> f64 {
        let ranks = self.ranks.as_ref();
        let rank = ranks.and_then(|ranks| ranks.get(&type_and_zone(offering)));
        rank.map_or(offering.price_per_hour, |rank| *rank as f64)
    }
}

/// The caller's best capacity type, or without a policy's say: reserved, then spot, then on-demand.
fn capacity_type(
    request: &LaunchRequest,
    options: &AwsOptions,
) -> Result<CapacityType, CloudProviderError> {
    let preference = [
        CapacityType::Reserved,
        CapacityType::Spot,
        CapacityType::OnDemand,
    ];
    let usable = || {
        let all = request.offerings.iter().map(|it| it.capacity_type);
        all.filter(|kind| *kind != CapacityType::Reserved || options.reserved_capacity)
    };
    let chosen = if request.order_differs_from_price {
        usable().next()
    } else {
        preference
            .into_iter()
            .find(|kind| usable().any(|offered| offered == *kind))
    };
    chosen.ok_or_else(|| {
        CloudProviderError::InsufficientCapacity(
            "every offering of the claim is unavailable".to_owned(),
        )
    })
}
