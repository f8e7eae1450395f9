//! A small AWS in memory: just enough for the tests of this crate, and a record of what was asked.
//!
//! Nothing of it is in the binary. The AWS that people may live in is `sim`'s.

mod iam;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use apis::labels;
use async_trait::async_trait;
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::operation::create_launch_template::{
    CreateLaunchTemplateInput, CreateLaunchTemplateOutput,
};
use aws_sdk_ec2::operation::create_tags::{CreateTagsInput, CreateTagsOutput};
use aws_sdk_ec2::operation::delete_launch_template::{
    DeleteLaunchTemplateInput, DeleteLaunchTemplateOutput,
};
use aws_sdk_ec2::operation::describe_capacity_reservations::{
    DescribeCapacityReservationsInput, DescribeCapacityReservationsOutput,
};
use aws_sdk_ec2::operation::describe_images::{DescribeImagesInput, DescribeImagesOutput};
use aws_sdk_ec2::operation::describe_instance_status::{
    DescribeInstanceStatusInput, DescribeInstanceStatusOutput,
};
use aws_sdk_ec2::operation::describe_instance_type_offerings::{
    DescribeInstanceTypeOfferingsInput, DescribeInstanceTypeOfferingsOutput,
};
use aws_sdk_ec2::operation::describe_instance_types::{
    DescribeInstanceTypesInput, DescribeInstanceTypesOutput,
};
use aws_sdk_ec2::operation::describe_instances::{DescribeInstancesInput, DescribeInstancesOutput};
use aws_sdk_ec2::operation::describe_launch_templates::{
    DescribeLaunchTemplatesInput, DescribeLaunchTemplatesOutput,
};
use aws_sdk_ec2::operation::describe_placement_groups::{
    DescribePlacementGroupsInput, DescribePlacementGroupsOutput,
};
use aws_sdk_ec2::operation::describe_security_groups::{
    DescribeSecurityGroupsInput, DescribeSecurityGroupsOutput,
};
use aws_sdk_ec2::operation::describe_spot_price_history::{
    DescribeSpotPriceHistoryInput, DescribeSpotPriceHistoryOutput,
};
use aws_sdk_ec2::operation::describe_subnets::{DescribeSubnetsInput, DescribeSubnetsOutput};
use aws_sdk_ec2::operation::reboot_instances::{RebootInstancesInput, RebootInstancesOutput};
use aws_sdk_ec2::operation::run_instances::{RunInstancesInput, RunInstancesOutput};
use aws_sdk_ec2::operation::terminate_instances::{
    TerminateInstancesInput, TerminateInstancesOutput,
};
use aws_sdk_ec2::types::{
    ArchitectureValues, CapacityReservation, CreateFleetError, CreateFleetInstance, Filter,
    FleetLaunchTemplateOverrides, FleetLaunchTemplateOverridesRequest, GroupIdentifier, Image,
    Instance, InstanceState, InstanceStateChange, InstanceStateName, InstanceTypeInfo,
    InstanceTypeOffering, LaunchTemplate, LaunchTemplateAndOverridesResponse, Placement,
    PlacementGroup, RequestLaunchTemplateData, Reservation, SecurityGroup, Subnet, Tag,
};
use aws_sdk_pricing::operation::get_products::{GetProductsInput, GetProductsOutput};
use aws_sdk_ssm::operation::get_parameter::{GetParameterInput, GetParameterOutput};
use aws_sdk_ssm::types::Parameter;
use aws_smithy_types::DateTime;
use jiff::Timestamp;
use locks::lock;

use crate::error::LAUNCH_TEMPLATE_NAME_NOT_FOUND;
use crate::seam::{ApiError, ApiResult, Ec2Api, PricingApi, SsmApi, ZonalShift, ZonalShiftApi};
use crate::tags::tag_value;

pub(crate) const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

#[derive(Debug, Default)]
pub(crate) struct FakeState {
    pub(crate) types: Vec<InstanceTypeInfo>,
    pub(crate) subnets: Vec<Subnet>,
    pub(crate) security_groups: Vec<SecurityGroup>,
    pub(crate) images: Vec<Image>,
    pub(crate) placement_groups: Vec<PlacementGroup>,
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) templates: BTreeMap<String, RequestLaunchTemplateData>,
    pub(crate) instances: BTreeMap<String, Instance>,
    /// Role by profile name; empty for none.
    pub(crate) profiles: BTreeMap<String, String>,
    pub(crate) profile_paths: BTreeMap<String, String>,
    /// Name of the profile that may not be deleted.
    pub(crate) fixed_profile: Option<String>,
    pub(crate) reservations: Vec<CapacityReservation>,
    /// As ARC has applied them.
    pub(crate) shifts: Vec<ZonalShift>,
    /// What DescribePlacementGroups is refused with.
    pub(crate) no_placement_groups: Option<ApiError>,
    pub(crate) fleets: Vec<CreateFleetInput>,
    /// Dry runs of fleets and of single instances.
    pub(crate) trials: Vec<CreateFleetInput>,
    pub(crate) runs: Vec<RunInstancesInput>,
    /// What operations are refused with, dry runs included.
    pub(crate) verdicts: BTreeMap<&'static str, ApiError>,
    /// Error code by (type, zone).
    pub(crate) refusals: BTreeMap<(String, String), String>,
    /// Whole calls that fail, first come.
    pub(crate) fleet_failures: VecDeque<ApiError>,
    /// The same of look-ups of instances.
    pub(crate) describe_failures: VecDeque<ApiError>,
    /// Errors of calls that were done all the same, first come.
    pub(crate) lost_answers: VecDeque<ApiError>,
    /// Fleets are answered once a token.
    pub(crate) keeps_tokens: bool,
    pub(crate) answered: BTreeMap<String, (String, CreateFleetOutput)>,
    /// A type that is launched whatever was asked for.
    pub(crate) surprise: Option<String>,
    pub(crate) calls: BTreeMap<&'static str, usize>,
}

impl FakeState {
    /// What a dry run is answered with.
    fn trial(&self, operation: &str) -> ApiError {
        let fine = || ApiError::client("DryRunOperation", "would have succeeded");
        self.verdicts.get(operation).cloned().unwrap_or_else(fine)
    }
}

/// The fake.
#[derive(Debug, Default)]
pub(crate) struct FakeAws(Mutex<FakeState>);

impl FakeAws {
    /// Two zones with a subnet each, a security group, and AL2023 images for both architectures.
    pub(crate) fn new(types: Vec<InstanceTypeInfo>) -> Arc<Self> {
        let fake = Self::default();
        fake.edit(|state| {
            state.types = types;
            for (index, zone) in ZONES.iter().enumerate() {
                state.subnets.push(subnet(&format!("subnet-{index}"), zone, 1000));
            }
            let group = SecurityGroup::builder().group_id("sg-1").group_name("nodes").build();
            state.security_groups.push(group);
            for (arch, variant, id) in [
                ("x86_64", "standard", "ami-x86"),
                ("arm64", "standard", "ami-arm"),
                ("x86_64", "nvidia", "ami-gpu"),
            ] {
                let path = format!(
                    "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/{arch}/{variant}/recommended/image_id"
                );
                state.parameters.insert(path, id.to_owned());
                state.images.push(image(id, arch, "2025-12-01T00:00:00.000Z"));
            }
        });
        Arc::new(fake)
    }

    pub(crate) fn edit<T>(&self, change: impl FnOnce(&mut FakeState) -> T) -> T {
        change(&mut lock(&self.0))
    }

    pub(crate) fn calls(&self, operation: &str) -> usize {
        self.edit(|state| state.calls.get(operation).copied().unwrap_or(0))
    }

    fn count<T>(&self, operation: &'static str, answer: impl FnOnce(&mut FakeState) -> T) -> T {
        self.edit(|state| {
            *state.calls.entry(operation).or_default() += 1;
            answer(state)
        })
    }
}

/// A moment of a test.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn zone_id(zone: &str) -> String {
    zone.replace("us-east-1", "use1-az-")
}

pub(crate) fn subnet(id: &str, zone: &str, free: i32) -> Subnet {
    Subnet::builder()
        .subnet_id(id)
        .availability_zone(zone)
        .availability_zone_id(zone_id(zone))
        .available_ip_address_count(free)
        .tags(Tag::builder().key("team").value("a").build())
        .build()
}

pub(crate) fn image(id: &str, arch: &str, created: &str) -> Image {
    Image::builder()
        .image_id(id)
        .name(format!("image-{id}"))
        .architecture(ArchitectureValues::from(arch))
        .creation_date(created)
        .build()
}

fn values<'a>(filters: Option<&'a Vec<Filter>>, name: &str) -> Option<&'a [String]> {
    filters?
        .iter()
        .find(|filter| filter.name() == Some(name))
        .map(Filter::values)
}

fn passes(filters: Option<&Vec<Filter>>, name: &str, value: Option<&str>) -> bool {
    values(filters, name).is_none_or(|allowed| {
        allowed
            .iter()
            .any(|allowed| Some(allowed.as_str()) == value)
    })
}

fn fulfil(state: &mut FakeState, input: &CreateFleetInput) -> CreateFleetOutput {
    let configs = input.launch_template_configs();
    let overrides: Vec<&FleetLaunchTemplateOverridesRequest> = configs
        .iter()
        .flat_map(aws_sdk_ec2::types::FleetLaunchTemplateConfigRequest::overrides)
        .collect();
    let mut errors = Vec::new();
    let mut instances = Vec::new();
    let wanted = input
        .target_capacity_specification()
        .and_then(aws_sdk_ec2::types::TargetCapacitySpecificationRequest::total_target_capacity);
    for _ in 0..wanted.unwrap_or(1) {
        for request in &overrides {
            let key = (
                request.instance_type().unwrap().as_str().to_owned(),
                request.availability_zone().unwrap().to_owned(),
            );
            let given = state.surprise.as_ref().unwrap_or(&key.0).clone();
            let told = FleetLaunchTemplateOverrides::builder()
                .instance_type(given.as_str().into())
                .availability_zone(&key.1)
                .set_subnet_id(request.subnet_id().map(str::to_owned))
                .set_image_id(request.image_id().map(str::to_owned))
                .build();
            let response = LaunchTemplateAndOverridesResponse::builder()
                .overrides(told)
                .build();
            if let Some(code) = state.refusals.get(&key) {
                let error = CreateFleetError::builder()
                    .error_code(code)
                    .error_message("refused");
                errors.push(error.launch_template_and_overrides(response).build());
                continue;
            }
            let id = format!("i-{:04}", state.instances.len());
            let mut made = instance(&id, request, input);
            made.instance_type = Some(given.as_str().into());
            state.instances.insert(id.clone(), made);
            let launched = CreateFleetInstance::builder().instance_ids(id);
            instances.push(launched.launch_template_and_overrides(response).build());
            break;
        }
    }
    CreateFleetOutput::builder()
        .set_errors(Some(errors))
        .set_instances(Some(instances))
        .build()
}

fn instance(
    id: &str,
    request: &FleetLaunchTemplateOverridesRequest,
    input: &CreateFleetInput,
) -> Instance {
    let tags = input
        .tag_specifications()
        .iter()
        .find(|s| s.resource_type().is_some_and(|r| r.as_str() == "instance"));
    Instance::builder()
        .instance_id(id)
        .set_instance_type(request.instance_type().cloned())
        .set_subnet_id(request.subnet_id().map(str::to_owned))
        .set_image_id(request.image_id().map(str::to_owned))
        .placement(
            Placement::builder()
                .set_availability_zone(request.availability_zone().map(str::to_owned))
                .set_availability_zone_id(request.availability_zone().map(zone_id))
                .build(),
        )
        .security_groups(GroupIdentifier::builder().group_id("sg-1").build())
        .state(
            InstanceState::builder()
                .name(InstanceStateName::Running)
                .build(),
        )
        .launch_time(DateTime::from_secs(0))
        .set_tags(tags.map(|specification| specification.tags().to_vec()))
        .build()
}

#[async_trait]
impl Ec2Api for FakeAws {
    async fn describe_instance_types(
        &self,
        _: DescribeInstanceTypesInput,
    ) -> ApiResult<DescribeInstanceTypesOutput> {
        self.count("DescribeInstanceTypes", |state| {
            Ok(DescribeInstanceTypesOutput::builder()
                .set_instance_types(Some(state.types.clone()))
                .build())
        })
    }

    async fn describe_instance_type_offerings(
        &self,
        _: DescribeInstanceTypeOfferingsInput,
    ) -> ApiResult<DescribeInstanceTypeOfferingsOutput> {
        self.count("DescribeInstanceTypeOfferings", |state| {
            let names = state
                .types
                .iter()
                .filter_map(InstanceTypeInfo::instance_type);
            let offerings = names.flat_map(|name| {
                ZONES.map(|zone| {
                    InstanceTypeOffering::builder()
                        .instance_type(name.clone())
                        .location(zone)
                        .build()
                })
            });
            let offerings = Some(offerings.collect());
            Ok(DescribeInstanceTypeOfferingsOutput::builder()
                .set_instance_type_offerings(offerings)
                .build())
        })
    }

    async fn describe_spot_price_history(
        &self,
        _: DescribeSpotPriceHistoryInput,
    ) -> ApiResult<DescribeSpotPriceHistoryOutput> {
        self.count("DescribeSpotPriceHistory", |_| {
            Ok(DescribeSpotPriceHistoryOutput::builder().build())
        })
    }

    async fn describe_subnets(
        &self,
        input: DescribeSubnetsInput,
    ) -> ApiResult<DescribeSubnetsOutput> {
        self.count("DescribeSubnets", |state| {
            let filters = input.filters.as_ref();
            let found = state.subnets.iter().filter(|subnet| {
                let tag = subnet
                    .tags()
                    .iter()
                    .find(|tag| tag.key() == Some("team"))
                    .and_then(Tag::value);
                passes(filters, "subnet-id", subnet.subnet_id()) && passes(filters, "tag:team", tag)
            });
            Ok(DescribeSubnetsOutput::builder()
                .set_subnets(Some(found.cloned().collect()))
                .build())
        })
    }

    async fn describe_security_groups(
        &self,
        input: DescribeSecurityGroupsInput,
    ) -> ApiResult<DescribeSecurityGroupsOutput> {
        self.count("DescribeSecurityGroups", |state| {
            let filters = input.filters.as_ref();
            let found = state.security_groups.iter().filter(|group| {
                passes(filters, "group-id", group.group_id())
                    && passes(filters, "group-name", group.group_name())
            });
            let found = Some(found.cloned().collect());
            Ok(DescribeSecurityGroupsOutput::builder()
                .set_security_groups(found)
                .build())
        })
    }

    async fn describe_images(&self, input: DescribeImagesInput) -> ApiResult<DescribeImagesOutput> {
        self.count("DescribeImages", |state| {
            let filters = input.filters.as_ref();
            let found = state.images.iter().filter(|image| {
                passes(filters, "image-id", image.image_id())
                    && passes(filters, "name", image.name())
            });
            Ok(DescribeImagesOutput::builder()
                .set_images(Some(found.cloned().collect()))
                .build())
        })
    }

    async fn describe_launch_templates(
        &self,
        input: DescribeLaunchTemplatesInput,
    ) -> ApiResult<DescribeLaunchTemplatesOutput> {
        self.count("DescribeLaunchTemplates", |state| {
            let asked = input.launch_template_names();
            let is_asked = |name: &&String| asked.is_empty() || asked.contains(*name);
            let found: Vec<LaunchTemplate> = state
                .templates
                .keys()
                .filter(is_asked)
                .map(|name| {
                    LaunchTemplate::builder()
                        .launch_template_name(name)
                        .launch_template_id(format!("lt:{name}"))
                        .build()
                })
                .collect();
            if found.is_empty() && !asked.is_empty() {
                return Err(ApiError::client(
                    LAUNCH_TEMPLATE_NAME_NOT_FOUND,
                    "no such template",
                ));
            }
            Ok(DescribeLaunchTemplatesOutput::builder()
                .set_launch_templates(Some(found))
                .build())
        })
    }

    async fn create_launch_template(
        &self,
        input: CreateLaunchTemplateInput,
    ) -> ApiResult<CreateLaunchTemplateOutput> {
        self.count("CreateLaunchTemplate", |state| {
            if let Some(refusal) = state.verdicts.get("CreateLaunchTemplate") {
                return Err(refusal.clone());
            }
            let name = input.launch_template_name.unwrap();
            state
                .templates
                .insert(name.clone(), input.launch_template_data.unwrap());
            let template = LaunchTemplate::builder()
                .launch_template_id(format!("lt:{name}"))
                .build();
            Ok(CreateLaunchTemplateOutput::builder()
                .launch_template(template)
                .build())
        })
    }

    async fn delete_launch_template(
        &self,
        input: DeleteLaunchTemplateInput,
    ) -> ApiResult<DeleteLaunchTemplateOutput> {
        self.count("DeleteLaunchTemplate", |state| {
            if let Some(refusal) = state.verdicts.get("DeleteLaunchTemplate") {
                return Err(refusal.clone());
            }
            let id = input.launch_template_id.unwrap();
            state.templates.remove(id.strip_prefix("lt:").unwrap());
            Ok(DeleteLaunchTemplateOutput::builder().build())
        })
    }

    async fn run_instances(&self, input: RunInstancesInput) -> ApiResult<RunInstancesOutput> {
        assert_eq!(
            input.dry_run,
            Some(true),
            "instances are launched by fleets"
        );
        self.count("RunInstances DryRun", |state| {
            let answer = state.trial("RunInstances");
            state.runs.push(input);
            Err(answer)
        })
    }

    async fn create_fleet(&self, input: CreateFleetInput) -> ApiResult<CreateFleetOutput> {
        if input.dry_run == Some(true) {
            return self.count("CreateFleet DryRun", |state| {
                let answer = state.trial("CreateFleet");
                state.trials.push(input);
                Err(answer)
            });
        }
        self.count("CreateFleet", |state| {
            state.fleets.push(input.clone());
            if let Some(failure) = state.fleet_failures.pop_front() {
                return Err(failure);
            }
            for config in input.launch_template_configs() {
                let name = config
                    .launch_template_specification()
                    .and_then(|s| s.launch_template_name());
                if !state.templates.contains_key(name.unwrap()) {
                    return Err(ApiError::client(
                        LAUNCH_TEMPLATE_NAME_NOT_FOUND,
                        "no such template",
                    ));
                }
            }
            let token = input.client_token().unwrap_or_default().to_owned();
            let request = format!("{input:?}");
            if let Some((known, answer)) = state.answered.get(&token) {
                let mismatch =
                    || ApiError::client("IdempotentParameterMismatch", "another request");
                return (*known == request)
                    .then(|| answer.clone())
                    .ok_or_else(mismatch);
            }
            let answer = fulfil(state, &input);
            if state.keeps_tokens {
                state.answered.insert(token, (request, answer.clone()));
            }
            match state.lost_answers.pop_front() {
                Some(error) => Err(error),
                None => Ok(answer),
            }
        })
    }

    async fn describe_instances(
        &self,
        input: DescribeInstancesInput,
    ) -> ApiResult<DescribeInstancesOutput> {
        self.count("DescribeInstances", |state| {
            if let Some(failure) = state.describe_failures.pop_front() {
                return Err(failure);
            }
            let ids = input.instance_ids();
            if let Some(unknown) = ids.iter().find(|id| !state.instances.contains_key(*id)) {
                return Err(ApiError::client(
                    "InvalidInstanceID.NotFound",
                    unknown.as_str(),
                ));
            }
            let found = state
                .instances
                .iter()
                .filter(|(id, _)| ids.is_empty() || ids.contains(id))
                .filter(|(_, it)| {
                    let token = tag_value(it.tags(), labels::LAUNCH_TAG);
                    passes(input.filters.as_ref(), "tag:mortise.dev/launch", token)
                });
            let reservation = Reservation::builder()
                .set_instances(Some(found.map(|(_, i)| i.clone()).collect()))
                .build();
            Ok(DescribeInstancesOutput::builder()
                .reservations(reservation)
                .build())
        })
    }

    async fn describe_instance_status(
        &self,
        _: DescribeInstanceStatusInput,
    ) -> ApiResult<DescribeInstanceStatusOutput> {
        Ok(DescribeInstanceStatusOutput::builder().build())
    }

    async fn terminate_instances(
        &self,
        input: TerminateInstancesInput,
    ) -> ApiResult<TerminateInstancesOutput> {
        self.count("TerminateInstances", |state| {
            let going = InstanceState::builder()
                .name(InstanceStateName::ShuttingDown)
                .build();
            let mut changes = Vec::new();
            for id in input.instance_ids() {
                let Some(instance) = state.instances.get_mut(id) else {
                    return Err(ApiError::client("InvalidInstanceID.NotFound", id.as_str()));
                };
                instance.state = Some(going.clone());
                changes.push(
                    InstanceStateChange::builder()
                        .instance_id(id)
                        .current_state(going.clone())
                        .build(),
                );
            }
            Ok(TerminateInstancesOutput::builder()
                .set_terminating_instances(Some(changes))
                .build())
        })
    }

    async fn reboot_instances(
        &self,
        input: RebootInstancesInput,
    ) -> ApiResult<RebootInstancesOutput> {
        self.count("RebootInstances", |state| {
            match input
                .instance_ids()
                .iter()
                .find(|id| !state.instances.contains_key(*id))
            {
                Some(id) => Err(ApiError::client("InvalidInstanceID.NotFound", id.as_str())),
                None => Ok(RebootInstancesOutput::builder().build()),
            }
        })
    }

    async fn create_tags(&self, input: CreateTagsInput) -> ApiResult<CreateTagsOutput> {
        self.count("CreateTags", |state| {
            for id in input.resources() {
                let instance = state.instances.get_mut(id).unwrap();
                instance
                    .tags
                    .get_or_insert_default()
                    .extend(input.tags().to_vec());
            }
            Ok(CreateTagsOutput::builder().build())
        })
    }

    async fn describe_capacity_reservations(
        &self,
        input: DescribeCapacityReservationsInput,
    ) -> ApiResult<DescribeCapacityReservationsOutput> {
        self.count("DescribeCapacityReservations", |state| {
            let ids = input.capacity_reservation_ids();
            let known = |id: &&String| {
                let mut known = state.reservations.iter();
                known.any(|it| it.capacity_reservation_id() == Some(id))
            };
            if let Some(unknown) = ids.iter().find(|id| !known(id)) {
                let code = "InvalidCapacityReservationId.NotFound";
                return Err(ApiError::client(code, unknown.as_str()));
            }
            let is_asked = |it: &&CapacityReservation| {
                let id = it.capacity_reservation_id().unwrap_or_default();
                ids.is_empty() || ids.iter().any(|asked| asked == id)
            };
            let found = state.reservations.iter().filter(is_asked).cloned();
            Ok(DescribeCapacityReservationsOutput::builder()
                .set_capacity_reservations(Some(found.collect()))
                .build())
        })
    }

    async fn describe_placement_groups(
        &self,
        _: DescribePlacementGroupsInput,
    ) -> ApiResult<DescribePlacementGroupsOutput> {
        self.count("DescribePlacementGroups", |state| {
            if let Some(error) = &state.no_placement_groups {
                return Err(error.clone());
            }
            let groups = Some(state.placement_groups.clone());
            Ok(DescribePlacementGroupsOutput::builder()
                .set_placement_groups(groups)
                .build())
        })
    }
}

#[async_trait]
impl SsmApi for FakeAws {
    async fn get_parameter(&self, input: GetParameterInput) -> ApiResult<GetParameterOutput> {
        self.count("GetParameter", |state| {
            let Some(value) = state.parameters.get(&input.name.unwrap()) else {
                return Err(ApiError::client("ParameterNotFound", "there is none"));
            };
            Ok(GetParameterOutput::builder()
                .parameter(Parameter::builder().value(value).build())
                .build())
        })
    }
}

#[async_trait]
impl ZonalShiftApi for FakeAws {
    async fn zonal_shifts(&self, _: &str) -> ApiResult<Vec<ZonalShift>> {
        self.count("GetManagedResource", |state| Ok(state.shifts.clone()))
    }
}

#[async_trait]
impl PricingApi for FakeAws {
    async fn get_products(&self, _: GetProductsInput) -> ApiResult<GetProductsOutput> {
        self.count("GetProducts", |_| Ok(GetProductsOutput::builder().build()))
    }
}
