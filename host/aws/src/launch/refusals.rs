//! Refusals of a fleet by EC2: counted, hidden from the next solve, and told as one error.
//!
//! Nothing here calls EC2. Answers to Karpenter's `pkg/providers/instance/instance.go`
//! (`updateUnavailableOfferingsCache`) and `pkg/errors/errors.go`.

use std::collections::BTreeSet;

use apis::CapacityType;
use cloudprovider::CloudProviderError;

use super::LaunchContext;
use super::fleet::FleetError;
use super::plan::LaunchPlan;
use crate::error::{SPOT_ROLE_MISSING, SUBNET_FULL, is_unfulfillable, launch_failure};
use crate::metrics::{AwsMetrics, FailurePlace};
use crate::subnet::ZonalSubnets;
use crate::unavailable_offerings::OfferingName;

const SPREAD_LIMIT: &str = "limit of instances in this spread placement group";

/// An error with the place that it is about, as far as EC2 tells it.
struct Refusal<'a> {
    error: &'a FleetError,
    place: FailurePlace<'a>,
}

impl<'a> Refusal<'a> {
    fn of(error: &'a FleetError, zonal: &'a ZonalSubnets) -> Self {
        let subnet = error.subnet_id.as_deref();
        let subnet = subnet.and_then(|it| zonal.zone_of(it));
        let zone = error.zone.as_deref();
        let zone = zone.or_else(|| subnet.map(|it| it.zone.as_str()));
        let zone_id = subnet.and_then(|it| it.zone_id.as_deref());
        Self {
            error,
            place: FailurePlace {
                zone: zone.unwrap_or_default(),
                zone_id: zone_id.unwrap_or_default(),
            },
        }
    }

    /// Hides from the next solve what was refused.
    fn note(&self, plan: &LaunchPlan, context: &LaunchContext<'_>) {
        let Self { error, place } = self;
        let (unavailable, now) = (context.unavailable, context.now);
        if error.code == SPOT_ROLE_MISSING {
            unavailable.mark_capacity_type(CapacityType::Spot, now);
            return;
        }
        let group = context.placement_group.as_ref();
        let group = group.map(|group| group.id.as_str());
        let mark = |instance_type: &str| {
            let offered = OfferingName {
                instance_type,
                zone: place.zone,
                capacity_type: plan.capacity_type,
            };
            unavailable.mark(offered, group, now);
        };
        if group.is_some() && error.message.contains(SPREAD_LIMIT) {
            plan.instance_type_names().for_each(mark);
        }
        if !is_unfulfillable(&error.code) {
            return;
        }
        let instance_type = error.instance_type.as_deref();
        match (
            plan.reservation_of(instance_type, place.zone),
            instance_type,
        ) {
            (Some(reservation_id), _) => context.reservations.set(reservation_id, 0, now),
            (None, Some(instance_type)) => mark(instance_type),
            (None, None) => {}
        }
        if error.code == SUBNET_FULL
            && let Some(subnet_id) = &error.subnet_id
        {
            unavailable.mark_subnet(subnet_id, now);
            context.subnets.mark_full(subnet_id, now);
        }
    }
}

/// Counts what was refused, and hides it from the next solve.
pub(super) fn note_all(
    errors: &[FleetError],
    zonal: &ZonalSubnets,
    plan: &LaunchPlan,
    context: &LaunchContext<'_>,
    metrics: &AwsMetrics,
) {
    let refusals = errors.iter().map(|it| Refusal::of(it, zonal));
    for refusal in refusals {
        metrics.launch_failed(refusal.place, plan.capacity_type, &refusal.error.code);
        refusal.note(plan, context);
    }
}

/// One error out of those of a fleet.
pub(super) fn combined(errors: &[FleetError]) -> CloudProviderError {
    let distinct: BTreeSet<(&str, &str)> = errors
        .iter()
        .map(|error| (error.code.as_str(), error.message.as_str()))
        .collect();
    let texts: Vec<String> = distinct
        .iter()
        .map(|(code, message)| format!("{code}: {message}"))
        .collect();
    let text = texts.join("; ");
    let is_capacity =
        |error: &FleetError| is_unfulfillable(&error.code) || error.code == SPOT_ROLE_MISSING;
    if errors.iter().all(is_capacity) {
        let text = if text.is_empty() {
            "EC2 launched fewer instances than asked".to_owned()
        } else {
            text
        };
        return CloudProviderError::InsufficientCapacity(text);
    }
    launch_failure(&text)
}
