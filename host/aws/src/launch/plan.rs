//! What to ask EC2 for: capacity type, types, templates, overrides.
//!
//! Pure up to the templates' names. Answers to Karpenter's `pkg/providers/instance/instance.go` (launchInstance,
//! getLaunchTemplateConfigs, getOverrides).

use std::collections::{BTreeMap, BTreeSet};

use apis::ec2nodeclass::{CapacityReservationType, Subnet};
use apis::resources::Resources;
use apis::{NodeClaim, labels};
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::types::{
    DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest,
    FleetOnDemandAllocationStrategy, FleetReservationType, FleetType, OnDemandOptionsRequest,
    ReservedCapacityOptionsRequest, ResourceType, SpotAllocationStrategy, SpotOptionsRequest,
    TargetCapacitySpecificationRequest,
};
use cloudprovider::{CloudProviderError, LaunchRequest, Launched};
use scheduling::instance_type::InstanceType;
use scheduling::ranking::RankedOffering;

use super::LaunchContext;
use super::filter::{
    Candidate, candidates, has_min_values, keep_offerings, truncate, without_dear_spot,
    without_exotic,
};
use super::fleet::FleetInstance;
use super::reserved::{Reservation, reserve};
use super::template::Template;
use crate::ami::ami_for;
use crate::error::invalid;
use crate::hash::hash_annotations;
use crate::instance::provider_id;
use crate::options::AwsOptions;
use crate::subnet::ZonalSubnets;
use crate::tags::{launch_tags, specification};

/// What one launch asks for.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) capacity_type: &'static str,
    pub(super) candidates: Vec<Candidate>,
    pub(super) tenancy: &'static str,
    /// Reservations by type and zone; empty unless the capacity type is reserved.
    pub(super) reservations: BTreeMap<(String, String), Reservation>,
    /// Whether EC2 must keep the order rather than choose by price.
    is_prioritized: bool,
    /// Place of an offering in the caller's order, by type and zone.
    ranks: BTreeMap<(String, String), usize>,
}

impl Plan {
    pub(super) fn of(context: &LaunchContext<'_>) -> Result<Self, CloudProviderError> {
        let LaunchContext {
            request, options, ..
        } = context;
        let claim = &request.node_claim;
        let mut chosen = candidates(&request.offerings, &request.instance_types);
        let capacity_type = capacity_type(request, options)?;
        let mut reservations = BTreeMap::new();
        if capacity_type == labels::CAPACITY_TYPE_RESERVED {
            (chosen, reservations) = reserve(chosen, claim);
        }
        if !has_min_values(claim) {
            chosen = without_dear_spot(without_exotic(chosen));
        }
        let is_kind = |kind: &str| {
            chosen
                .iter()
                .flat_map(|c| &c.offerings)
                .any(|o| o.capacity_type == kind)
        };
        // The filters may have taken every spot offering away.
        let capacity_type = if is_kind(capacity_type) {
            capacity_type
        } else {
            labels::CAPACITY_TYPE_ON_DEMAND
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
            .map(|(rank, offering)| {
                (
                    (offering.instance_type.clone(), offering.zone.clone()),
                    rank,
                )
            })
            .collect();
        Ok(Self {
            capacity_type,
            candidates,
            tenancy: tenancy(claim),
            reservations,
            is_prioritized: request.order_differs_from_price || has_overlay,
            ranks,
        })
    }

    /// The fewest pods that may land in a zone, by which its subnet is debited.
    pub(super) fn pods_by_zone(&self) -> BTreeMap<String, i64> {
        let mut pods: BTreeMap<String, i64> = BTreeMap::new();
        for candidate in &self.candidates {
            let capacity = candidate.instance_type.capacity.get(labels::RESOURCE_PODS) / 1000;
            for offering in &candidate.offerings {
                let least = pods.entry(offering.zone.clone()).or_insert(capacity);
                *least = capacity.min(*least);
            }
        }
        pods
    }

    pub(super) fn instance_type_names(&self) -> impl Iterator<Item = &str> {
        self.candidates
            .iter()
            .map(|candidate| candidate.instance_type.name.as_str())
    }

    /// The reservation behind an offering of this plan.
    pub(super) fn reservation_of(&self, instance_type: Option<&str>, zone: &str) -> Option<&str> {
        let key = (instance_type?.to_owned(), zone.to_owned());
        self.reservations
            .get(&key)
            .map(|reservation| reservation.id.as_str())
    }

    /// The offerings of the template that have a subnet, each with its type's name and that subnet.
    pub(super) fn offered<'a>(
        &'a self,
        template: &'a Template,
        zonal: &'a ZonalSubnets,
    ) -> impl Iterator<Item = (&'a str, &'a RankedOffering, &'a Subnet)> {
        let of_template = self
            .candidates
            .iter()
            .filter(|it| template.instance_types.contains(&it.instance_type.name));
        of_template.flat_map(move |candidate| {
            let name = candidate.instance_type.name.as_str();
            candidate.offerings.iter().filter_map(move |offering| {
                let reservation = self.reservation_of(Some(name), &offering.zone);
                let is_mine = template.reservation_id.as_deref() == reservation;
                let subnet = zonal.get(&offering.zone).filter(|_| is_mine)?;
                Some((name, offering, subnet))
            })
        })
    }

    /// One override for each type and zone of the template that has a subnet.
    pub(super) fn overrides(
        &self,
        template: &Template,
        zonal: &ZonalSubnets,
    ) -> Vec<FleetLaunchTemplateOverridesRequest> {
        let mut seen = BTreeSet::new();
        let mut overrides = Vec::new();
        for (name, offering, subnet) in self.offered(template, zonal) {
            let key = (name.to_owned(), offering.zone.clone());
            let priority = self.priority(&key, offering.price_per_hour);
            if seen.insert(key) {
                overrides.push(
                    FleetLaunchTemplateOverridesRequest::builder()
                        .instance_type(name.into())
                        .subnet_id(&subnet.id)
                        .availability_zone(&subnet.zone)
                        .image_id(&template.parameters.image_id)
                        .priority(priority)
                        .build(),
                );
            }
        }
        overrides
    }

    /// Lower goes first: the place in the caller's order, or the price.
    fn priority(&self, key: &(String, String), price_per_hour: f64) -> f64 {
        match self.ranks.get(key) {
            Some(rank) if self.is_prioritized => *rank as f64,
            _ => price_per_hour,
        }
    }

    pub(super) fn fleet_input(
        &self,
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
            .default_target_capacity_type(self.target_capacity_type())
            .build();
        self.strategies(CreateFleetInput::builder())
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

    fn target_capacity_type(&self) -> DefaultTargetCapacityType {
        if self.capacity_type == labels::CAPACITY_TYPE_SPOT {
            return DefaultTargetCapacityType::Spot;
        }
        match self.reservations.values().next() {
            None => DefaultTargetCapacityType::OnDemand,
            Some(reservation) => match (reservation.kind, reservation.is_interruptible) {
                (CapacityReservationType::CapacityBlock, _) => {
                    DefaultTargetCapacityType::CapacityBlock
                }
                (CapacityReservationType::Default, true) => {
                    DefaultTargetCapacityType::ReservedCapacity
                }
                (CapacityReservationType::Default, false) => DefaultTargetCapacityType::OnDemand,
            },
        }
    }

    fn strategies(&self, input: FleetBuilder) -> FleetBuilder {
        match self.target_capacity_type() {
            DefaultTargetCapacityType::Spot => {
                let strategy = if self.is_prioritized {
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
                let strategy = if self.is_prioritized {
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

    /// The launched instance as its claim will tell it.
    pub(super) fn launched(
        &self,
        context: &LaunchContext<'_>,
        instance: &FleetInstance,
        zone: &str,
    ) -> Option<Launched> {
        let mut candidates = self.candidates.iter();
        let candidate =
            candidates.find(|candidate| candidate.instance_type.name == instance.instance_type)?;
        let instance_type = &candidate.instance_type;
        let LaunchContext { request, .. } = context;
        let class = &request.node_class;
        let status = class.status.as_ref();
        let image_id = instance
            .image_id
            .clone()
            .or_else(|| ami_for(&status?.amis, instance_type).map(|ami| ami.id.clone()));
        let claim = &request.node_claim;
        let has_efa =
            !class.spec.network_interfaces.is_empty() || asks_for(claim, labels::RESOURCE_EFA);
        let advertised = |resources: &Resources| -> Resources {
            let is_there = |(name, amount): &(&str, i64)| {
                *amount != 0 && (*name != labels::RESOURCE_EFA || has_efa)
            };
            resources.iter().filter(is_there).collect()
        };
        let mut annotations = hash_annotations(class, context.options);
        if let Some(profile) = status.and_then(|status| status.instance_profile.clone()) {
            annotations.insert(labels::INSTANCE_PROFILE_ANNOTATION.to_owned(), profile);
        }
        if let Some(id) = self.reservation_of(Some(&instance.instance_type), zone) {
            context.reservations.take(id);
        }
        Some(Launched {
            provider_id: provider_id(zone, &instance.id),
            image_id: image_id.unwrap_or_default(),
            node_claim_name: claim.metadata.name.clone(),
            node_pool_name: Some(node_pool(claim).to_owned()),
            labels: self.labels(instance_type, zone, context),
            annotations,
            capacity: advertised(&instance_type.capacity),
            allocatable: advertised(&instance_type.allocatable()),
            launched_at: Some(context.now),
            is_terminating: false,
        })
    }

    fn labels(
        &self,
        instance_type: &InstanceType,
        zone: &str,
        context: &LaunchContext<'_>,
    ) -> BTreeMap<String, String> {
        let mut labels = single_labels(instance_type);
        let group = context.placement_group.as_ref();
        if group.is_some_and(|it| it.partitions > 0) {
            // Empty until EC2 tells which it chose: the registration hook waits for that.
            let partition = context.partition().map(|it| it.to_string());
            let partition = partition.unwrap_or_default();
            labels.insert(labels::PLACEMENT_GROUP_PARTITION.to_owned(), partition);
        }
        labels.insert(labels::TOPOLOGY_ZONE.to_owned(), zone.to_owned());
        labels.insert(
            labels::CAPACITY_TYPE.to_owned(),
            self.capacity_type.to_owned(),
        );
        labels.insert(labels::INSTANCE_TENANCY.to_owned(), self.tenancy.to_owned());
        let offering = instance_type.offering(zone, self.capacity_type);
        let zone_id =
            offering.and_then(|offering| offering.requirements.find(labels::TOPOLOGY_ZONE_ID));
        if let Some(zone_id) = zone_id.and_then(|requirement| requirement.values().next()) {
            labels.insert(labels::TOPOLOGY_ZONE_ID.to_owned(), zone_id.to_owned());
        }
        let key = (instance_type.name.clone(), zone.to_owned());
        if let Some(reservation) = self.reservations.get(&key) {
            let Reservation {
                id,
                kind,
                is_interruptible,
                free: _,
            } = reservation;
            labels.insert(labels::CAPACITY_RESERVATION_ID.to_owned(), id.clone());
            labels.insert(
                labels::CAPACITY_RESERVATION_TYPE.to_owned(),
                kind.as_str().to_owned(),
            );
            let interruptible = labels::CAPACITY_RESERVATION_INTERRUPTIBLE.to_owned();
            labels.insert(interruptible, is_interruptible.to_string());
        }
        labels
    }
}

type FleetBuilder = aws_sdk_ec2::operation::create_fleet::builders::CreateFleetInputBuilder;

/// Labels that the type alone settles.
fn single_labels(instance_type: &InstanceType) -> BTreeMap<String, String> {
    let reservation_keys = [
        labels::CAPACITY_RESERVATION_ID,
        labels::CAPACITY_RESERVATION_TYPE,
        labels::CAPACITY_RESERVATION_INTERRUPTIBLE,
    ];
    let requirements = instance_type.requirements.iter();
    requirements
        .filter(|requirement| {
            !requirement.is_complement() && !reservation_keys.contains(&requirement.key())
        })
        .filter_map(|requirement| {
            let mut values = requirement.values();
            match (values.next(), values.next()) {
                (Some(value), None) => Some((requirement.key().to_owned(), value.to_owned())),
                _ => None,
            }
        })
        .collect()
}

/// The caller's best capacity type, or without a policy's say: reserved, then spot, then on-demand.
fn capacity_type(
    request: &LaunchRequest,
    options: &AwsOptions,
) -> Result<&'static str, CloudProviderError> {
    let preference = [
        labels::CAPACITY_TYPE_RESERVED,
        labels::CAPACITY_TYPE_SPOT,
        labels::CAPACITY_TYPE_ON_DEMAND,
    ];
    let known = |kind: &str| preference.into_iter().find(|known| *known == kind);
    let usable = || {
        let all = request
            .offerings
            .iter()
            .filter_map(|offering| known(&offering.capacity_type));
        all.filter(|kind| *kind != labels::CAPACITY_TYPE_RESERVED || options.reserved_capacity)
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

fn tenancy(claim: &NodeClaim) -> &'static str {
    let requirements = scheduling::requirements::Requirements::from_node_selector_requirements(
        &claim.spec.requirements,
    );
    if requirements.get(labels::INSTANCE_TENANCY).has("default") {
        "default"
    } else {
        "dedicated"
    }
}

/// Name of the claim's pool.
pub(super) fn node_pool(claim: &NodeClaim) -> &str {
    let labels = claim.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(labels::NODEPOOL))
        .map_or("", String::as_str)
}

/// Whether the claim's pods ask for a resource.
pub(super) fn asks_for(claim: &NodeClaim, resource: &str) -> bool {
    Resources::from_list(&claim.spec.resources.requests).get(resource) > 0
}

fn has_annotation(claim: &NodeClaim, key: &str) -> bool {
    let annotations = claim.metadata.annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(key))
        .is_some_and(|value| value == "true")
}
