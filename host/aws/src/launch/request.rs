//! The CreateFleet request of a launch, for one instance and without its token: templates, overrides, strategies.
//!
//! Pure up to the templates' names. Answers to Karpenter's `pkg/providers/instance/instance.go` (launchInstance,
//! getLaunchTemplateConfigs, getOverrides).

use std::collections::BTreeSet;

use apis::ec2nodeclass::{CapacityReservationType, Subnet};
use apis::{CapacityType, labels};
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::operation::create_fleet::builders::CreateFleetInputBuilder;
use aws_sdk_ec2::types::{
    DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest,
    FleetOnDemandAllocationStrategy, FleetReservationType, FleetType, OnDemandOptionsRequest,
    ReservedCapacityOptionsRequest, ResourceType, SpotAllocationStrategy, SpotOptionsRequest,
    TargetCapacitySpecificationRequest,
};
use cloudprovider::CloudProviderError;
use scheduling::ranking::RankedOffering;

use super::LaunchContext;
use super::claim::{has_annotation, node_pool};
use super::plan::LaunchPlan;
use super::template::LaunchTemplate;
use crate::error::invalid;
use crate::subnet::ZonalSubnets;
use crate::tags::{launch_tags, specification};

/// The offerings of the template that have a subnet, each with its type's name and that subnet.
pub(super) fn offered<'a>(
    plan: &'a LaunchPlan,
    template: &'a LaunchTemplate,
    zonal: &'a ZonalSubnets,
) -> impl Iterator<Item = (&'a str, &'a RankedOffering, &'a Subnet)> {
    let of_template = plan
        .candidates
        .iter()
        .filter(|it| template.instance_types.contains(&it.instance_type.name));
    of_template.flat_map(move |candidate| {
        let name = candidate.instance_type.name.as_str();
        candidate.offerings.iter().filter_map(move |offering| {
            let reservation = plan.reservation_of(Some(name), &offering.zone);
            let is_mine = template.reservation_id.as_deref() == reservation;
            let subnet = zonal.get(&offering.zone).filter(|_| is_mine)?;
            Some((name, offering, subnet))
        })
    })
}

/// One override for each type and zone of the template that has a subnet.
pub(super) fn overrides(
    plan: &LaunchPlan,
    template: &LaunchTemplate,
    zonal: &ZonalSubnets,
) -> Vec<FleetLaunchTemplateOverridesRequest> {
    let mut seen = BTreeSet::new();
    let mut overrides = Vec::new();
    for (name, offering, subnet) in offered(plan, template, zonal) {
        if seen.insert((name, &offering.zone)) {
            overrides.push(
                FleetLaunchTemplateOverridesRequest::builder()
                    .instance_type(name.into())
                    .subnet_id(&subnet.id)
                    .availability_zone(&subnet.zone)
                    .image_id(&template.parameters.image_id)
                    .priority(plan.priority(offering))
                    .build(),
            );
        }
    }
    overrides
}

/// The request, with a template of each name and its overrides.
pub(super) fn fleet_input(
    plan: &LaunchPlan,
    context: &LaunchContext<'_>,
    configs: Vec<(String, Vec<FleetLaunchTemplateOverridesRequest>)>,
) -> Result<CreateFleetInput, CloudProviderError> {
    let LaunchContext {
        request, options, ..
    } = context;
    let claim = &request.node_claim;
    let configs = configs.into_iter().map(|(name, overrides)| {
        let template = FleetLaunchTemplateSpecificationRequest::builder()
            .launch_template_name(name)
            .version("$Latest")
            .build();
        FleetLaunchTemplateConfigRequest::builder()
            .launch_template_specification(template)
            .set_overrides(Some(overrides))
            .build()
    });
    let tags = launch_tags(&request.node_class, &options.cluster_name, node_pool(claim));
    let kinds = [
        ResourceType::Instance,
        ResourceType::Volume,
        ResourceType::Fleet,
    ];
    let is_relaxed = has_annotation(claim, labels::NODECLAIM_MIN_VALUES_RELAXED_ANNOTATION);
    let context = request
        .node_class
        .spec
        .context
        .clone()
        .filter(|_| !is_relaxed);
    let target = TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(1)
        .default_target_capacity_type(target_capacity_type(plan))
        .build();
    strategies(plan, CreateFleetInput::builder())
        .r#type(FleetType::Instant)
        .set_launch_template_configs(Some(configs.collect()))
        .target_capacity_specification(target)
        .set_tag_specifications(Some(
            kinds
                .into_iter()
                .map(|kind| specification(kind, &tags))
                .collect(),
        ))
        .set_context(context)
        .build()
        .map_err(invalid)
}

fn target_capacity_type(plan: &LaunchPlan) -> DefaultTargetCapacityType {
    if plan.capacity_type == CapacityType::Spot {
        return DefaultTargetCapacityType::Spot;
    }
    match plan.reservations.values().next() {
        None => DefaultTargetCapacityType::OnDemand,
        Some(reservation) => match (reservation.kind, reservation.is_interruptible) {
            (CapacityReservationType::CapacityBlock, _) => DefaultTargetCapacityType::CapacityBlock,
            (CapacityReservationType::Default, true) => DefaultTargetCapacityType::ReservedCapacity,
            (CapacityReservationType::Default, false) => DefaultTargetCapacityType::OnDemand,
        },
    }
}

fn strategies(plan: &LaunchPlan, input: CreateFleetInputBuilder) -> CreateFleetInputBuilder {
    match target_capacity_type(plan) {
        DefaultTargetCapacityType::Spot => {
            let strategy = if plan.is_prioritized() {
                SpotAllocationStrategy::CapacityOptimizedPrioritized
            } else {
                SpotAllocationStrategy::PriceCapacityOptimized
            };
            input.spot_options(
                SpotOptionsRequest::builder()
                    .allocation_strategy(strategy)
                    .build(),
            )
        }
        DefaultTargetCapacityType::ReservedCapacity => {
            let kind = FleetReservationType::InterruptibleCapacityReservation;
            let options = ReservedCapacityOptionsRequest::builder()
                .reservation_types(kind)
                .build();
            input.reserved_capacity_options(options)
        }
        DefaultTargetCapacityType::CapacityBlock => input,
        _ => {
            let strategy = if plan.is_prioritized() {
                FleetOnDemandAllocationStrategy::Prioritized
            } else {
                FleetOnDemandAllocationStrategy::LowestPrice
            };
            input.on_demand_options(
                OnDemandOptionsRequest::builder()
                    .allocation_strategy(strategy)
                    .build(),
            )
        }
    }
}
