//! CreateFleet for fleets of type `instant`: which pool gives an instance, and what it costs to ask twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::create_fleet::{CreateFleetInput, CreateFleetOutput};
use aws_sdk_ec2::types::{
    CreateFleetError, CreateFleetInstance, DefaultTargetCapacityType, FleetLaunchTemplateOverrides,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecification,
    FleetOnDemandAllocationStrategy, FleetType, InstanceLifecycle, InstanceType as Ec2InstanceType,
    LaunchTemplateAndOverridesResponse, NetworkInterfaceCreationType, RequestLaunchTemplateData,
    ResourceType, SpotAllocationStrategy,
};
use jiff::{SignedDuration, Timestamp};

use super::State;
use super::bootstrap::Bootstrap;
use super::filters::tag_map;
use super::instance::{CapacityType, Instance, InstanceEvent};
use super::instance_types::dry_run;
use super::market::Pool;
use crate::catalogue::InstanceType;
use crate::random::{hash, hash_unit};

const GIB: i64 = 1 << 30;
const DEFAULT_EPHEMERAL_GIB: i64 = 20;

/// An answered fleet, for the client token.
#[derive(Debug)]
pub(super) struct FleetRecord {
    /// Digest of the request: requests are large and there are many.
    request: u64,
    answer: CreateFleetOutput,
}

/// One override that may give instances.
#[derive(Debug, Clone)]
struct Candidate {
    instance_type: Option<&'static InstanceType>,
    type_name: String,
    zone: String,
    subnet: Option<usize>,
    image_id: String,
    price: Option<f64>,
    priority: f64,
    pool: Pool,
    template: Template,
    order: usize,
}

#[derive(Debug, Clone)]
struct Template {
    id: String,
    name: String,
    data: Arc<RequestLaunchTemplateData>,
    bootstrap: Arc<Bootstrap>,
}

impl State {
    pub(super) fn create_fleet(
        &mut self,
        input: &CreateFleetInput,
    ) -> ApiResult<CreateFleetOutput> {
        let token = input.client_token.clone().unwrap_or_default();
        let request = hash(self.config.seed, &[&format!("{input:?}")]);
        if let Some(record) = self.fleets.get(&token) {
            if record.request == request {
                return Ok(record.answer.clone());
            }
            let message =
                "The request parameters do not match those of the earlier request with this token.";
            return Err(ApiError::client("IdempotentParameterMismatch", message));
        }
        let target = input
            .target_capacity_specification
            .as_ref()
            .ok_or_else(|| {
                ApiError::client(
                    "MissingParameter",
                    "TargetCapacitySpecification is required",
                )
            })?;
        let how = match target.default_target_capacity_type {
            Some(DefaultTargetCapacityType::Spot) => CapacityType::Spot,
            _ => CapacityType::OnDemand,
        };
        let mut candidates = self.candidates(input, how)?;
        if candidates.is_empty() {
            let message = "No overrides were given, or none names an instance type and a subnet.";
            return Err(ApiError::client("InvalidFleetConfig", message));
        }
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        self.order(&mut candidates, input, how);
        let answer = self.fulfil(
            input,
            &candidates,
            target.total_target_capacity.unwrap_or(1),
        );
        if !token.is_empty() {
            self.fleets.insert(
                token,
                FleetRecord {
                    request,
                    answer: answer.clone(),
                },
            );
        }
        let lost = self.config.faults.lost_answer_chance;
        if lost > 0.0 && self.chance.next_unit() < lost {
            return Err(ApiError {
                code: aws::seam::CODE_TRANSPORT.to_owned(),
                message: "the connection was reset before the answer arrived".to_owned(),
                fault: aws::seam::Fault::Transport,
            });
        }
        Ok(answer)
    }

    fn candidates(&self, input: &CreateFleetInput, how: CapacityType) -> ApiResult<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for config in input.launch_template_configs.as_deref().unwrap_or_default() {
            let specification = config.launch_template_specification.as_ref();
            let record = self.launch_template(
                specification.and_then(|s| s.launch_template_id.as_deref()),
                specification.and_then(|s| s.launch_template_name.as_deref()),
            )?;
            let template = Template {
                id: record.id.clone(),
                name: record.name.clone(),
                data: Arc::clone(&record.data),
                bootstrap: Arc::clone(&record.bootstrap),
            };
            let how = match (how, reservation_of(&template.data)) {
                (CapacityType::OnDemand, Some(_)) => CapacityType::Reserved,
                _ => how,
            };
            for request in config.overrides.as_deref().unwrap_or_default() {
                candidates.push(self.candidate(request, &template, how, candidates.len()));
            }
        }
        Ok(candidates)
    }

    fn candidate(
        &self,
        request: &FleetLaunchTemplateOverridesRequest,
        template: &Template,
        how: CapacityType,
        order: usize,
    ) -> Candidate {
        let type_name = request
            .instance_type()
            .map_or("", Ec2InstanceType::as_str)
            .to_owned();
        let subnet = self.subnets.iter().position(|s| match request.subnet_id() {
            Some(id) => s.id == id,
            None => request.availability_zone() == Some(s.zone.as_str()),
        });
        let zone = subnet.map_or_else(String::new, |index| self.subnets[index].zone.clone());
        let instance_type = self.catalogue.get(&type_name);
        let image_id = request
            .image_id()
            .or_else(|| template.data.image_id())
            .unwrap_or_default();
        Candidate {
            price: instance_type.and_then(|t| self.price(t, &zone, how)),
            pool: Pool::new(&type_name, &zone, how),
            instance_type,
            image_id: image_id.to_owned(),
            priority: request.priority().unwrap_or(f64::MAX),
            template: template.clone(),
            type_name,
            zone,
            subnet,
            order,
        }
    }

    /// Sorts as the fleet's allocation strategy would try the pools.
    fn order(&self, candidates: &mut [Candidate], input: &CreateFleetInput, how: CapacityType) {
        let now = self.now();
        let by_price = |c: &Candidate| c.price.unwrap_or(f64::MAX);
        if how == CapacityType::Spot {
            let strategy = input
                .spot_options
                .as_ref()
                .and_then(|o| o.allocation_strategy.clone());
            // Coarse depth: within a class pools count as equally safe, and price or priority decides.
            let class = |c: &Candidate| {
                let Some(t) = c.instance_type else {
                    return u32::MAX;
                };
                let left = self.available(t, &c.pool, now);
                if left == 0 {
                    2
                } else {
                    u32::from(left * 10 < self.depth(t, &c.pool))
                }
            };
            let depth = |c: &Candidate| {
                c.instance_type
                    .map_or(0, |t| self.available(t, &c.pool, now))
            };
            candidates.sort_by(|a, b| {
                match strategy {
                    Some(SpotAllocationStrategy::CapacityOptimized) => depth(b).cmp(&depth(a)),
                    Some(SpotAllocationStrategy::CapacityOptimizedPrioritized) => class(a)
                        .cmp(&class(b))
                        .then(a.priority.total_cmp(&b.priority)),
                    Some(SpotAllocationStrategy::PriceCapacityOptimized) => class(a)
                        .cmp(&class(b))
                        .then(by_price(a).total_cmp(&by_price(b))),
                    _ => by_price(a).total_cmp(&by_price(b)),
                }
                .then(a.order.cmp(&b.order))
            });
            return;
        }
        let strategy = input
            .on_demand_options
            .as_ref()
            .and_then(|o| o.allocation_strategy.clone());
        let prioritized = strategy == Some(FleetOnDemandAllocationStrategy::Prioritized);
        candidates.sort_by(|a, b| {
            let first = if prioritized {
                a.priority.total_cmp(&b.priority)
            } else {
                by_price(a).total_cmp(&by_price(b))
            };
            first.then(a.order.cmp(&b.order))
        });
    }

    fn fulfil(
        &mut self,
        input: &CreateFleetInput,
        candidates: &[Candidate],
        target: i32,
    ) -> CreateFleetOutput {
        let fleet_id = self.new_id("fleet");
        let mut errors = Vec::new();
        let mut refused = BTreeSet::new();
        let mut instances: Vec<(usize, Vec<String>)> = Vec::new();
        for _ in 0..target.max(0) {
            for (index, candidate) in candidates.iter().enumerate() {
                if refused.contains(&index) {
                    continue;
                }
                match self.refusal(candidate) {
                    Some((code, message)) => {
                        refused.insert(index);
                        errors.push(error(candidate, code, &message));
                    }
                    None => {
                        let Some(id) = self.launch(input, candidate, &fleet_id) else {
                            continue;
                        };
                        match instances.last_mut().filter(|(last, _)| *last == index) {
                            Some((_, ids)) => ids.push(id),
                            None => instances.push((index, vec![id])),
                        }
                        break;
                    }
                }
            }
        }
        let instances = instances.into_iter().map(|(index, ids)| {
            let candidate = &candidates[index];
            CreateFleetInstance::builder()
                .launch_template_and_overrides(response(candidate))
                .lifecycle(lifecycle(candidate))
                .set_instance_ids(Some(ids))
                .instance_type(Ec2InstanceType::from(candidate.type_name.as_str()))
                .availability_zone(&candidate.zone)
                .set_subnet_id(candidate.subnet.map(|index| self.subnets[index].id.clone()))
                .build()
        });
        CreateFleetOutput::builder()
            .fleet_id(fleet_id)
            .set_instances(Some(instances.collect()))
            .set_errors(Some(errors))
            .build()
    }

    /// Why a pool gives no instance now, in EC2's codes and words.
    fn refusal(&self, candidate: &Candidate) -> Option<(&'static str, String)> {
        let Candidate {
            type_name,
            zone,
            pool,
            ..
        } = candidate;
        let Some(t) = candidate.instance_type else {
            return Some((
                "InvalidParameterValue",
                format!("Invalid value '{type_name}' for InstanceType."),
            ));
        };
        let Some(subnet) = candidate.subnet else {
            return Some((
                "InvalidSubnetID.NotFound",
                "The subnet ID does not exist".to_owned(),
            ));
        };
        if !t.is_offered_in(zone) {
            let message = format!(
                "Your requested instance type ({type_name}) is not supported in your requested Availability Zone ({zone})."
            );
            return Some(("Unsupported", message));
        }
        let Some(image) = self.images.get(&candidate.image_id) else {
            let message = format!("The image id '[{}]' does not exist", candidate.image_id);
            return Some(("InvalidAMIID.NotFound", message));
        };
        if !t.architectures.contains(&image.architecture) {
            let message = format!(
                "The architecture '{}' of the specified instance type does not match the architecture '{}' of the specified AMI.",
                t.architectures.join(","),
                image.architecture
            );
            return Some(("InvalidParameterValue", message));
        }
        if pool.is_spot() && !t.has_usage_class("spot") {
            let message =
                "Unable to fulfill capacity due to your request configuration.".to_owned();
            return Some(("UnfulfillableCapacity", message));
        }
        if let Some(id) = reservation_of(&candidate.template.data) {
            let full = self.reservations.get(&id).is_none_or(|r| {
                r.used >= r.spec.instances
                    || r.spec.instance_type != *type_name
                    || r.spec.zone != *zone
            });
            if full {
                let message =
                    format!("The requested reservation ({id}) has no remaining capacity.");
                return Some(("ReservationCapacityExceeded", message));
            }
            return None;
        }
        self.shortage(candidate, t, subnet)
    }

    fn shortage(
        &self,
        candidate: &Candidate,
        t: &InstanceType,
        subnet: usize,
    ) -> Option<(&'static str, String)> {
        let now = self.now();
        if self.subnets[subnet].free < addresses(t) {
            let id = &self.subnets[subnet].id;
            let message = format!(
                "There are not enough free addresses in subnet '{id}' to satisfy the requested number of instances."
            );
            return Some(("InsufficientFreeAddressesInSubnet", message));
        }
        if let (Some(limit), false) = (
            self.config.faults.on_demand_vcpus_max,
            candidate.pool.is_spot(),
        ) {
            let used: u32 = self
                .instances
                .values()
                .filter(|i| i.is_billed(now) && i.capacity_type == CapacityType::OnDemand)
                .map(|instance| instance.instance_type.vcpus)
                .sum();
            if used + t.vcpus > limit {
                let message = format!(
                    "You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the specified instance type belongs to."
                );
                return Some(("VcpuLimitExceeded", message));
            }
        }
        if self.available(t, &candidate.pool, now) == 0 {
            let message = format!(
                "We currently do not have sufficient {} capacity in the Availability Zone you requested ({}). Our system will be working on provisioning additional capacity.",
                candidate.type_name, candidate.zone
            );
            return Some(("InsufficientInstanceCapacity", message));
        }
        None
    }

    fn launch(
        &mut self,
        input: &CreateFleetInput,
        candidate: &Candidate,
        fleet: &str,
    ) -> Option<String> {
        let instance = self.new_instance(input, candidate, fleet)?;
        let id = instance.id.clone();
        *self.used.entry(candidate.pool.clone()).or_default() += 1;
        if let Some(record) = instance
            .capacity_reservation_id
            .as_ref()
            .and_then(|id| self.reservations.get_mut(id))
        {
            record.used += 1;
        }
        self.launches += 1;
        self.instances.insert(id.clone(), instance);
        self.tell(&InstanceEvent::Launched(id.clone()));
        Some(id)
    }

    fn new_instance(
        &mut self,
        input: &CreateFleetInput,
        candidate: &Candidate,
        fleet_id: &str,
    ) -> Option<Instance> {
        let t = candidate.instance_type?;
        let now = self.now();
        let data = &candidate.template.data;
        let id = self.new_id("i");
        let spot_request_id = candidate.pool.is_spot().then(|| self.new_id("sir"));
        let subnet = self.subnets.get_mut(candidate.subnet?)?;
        subnet.free -= addresses(t);
        let (subnet_id, zone_id) = (subnet.id.clone(), subnet.zone_id.clone());
        let private_ip = subnet.next_address();
        let times = self.boot_times(now);
        let specifications = input.tag_specifications.as_deref().unwrap_or_default();
        let of_instance = specifications
            .iter()
            .filter(|specification| specification.resource_type == Some(ResourceType::Instance))
            .flat_map(|specification| specification.tags().to_vec());
        let mut tags = tag_map(&of_instance.collect::<Vec<_>>());
        tags.insert("aws:ec2:fleet-id".to_owned(), fleet_id.to_owned());
        tags.insert(
            "aws:ec2launchtemplate:id".to_owned(),
            candidate.template.id.clone(),
        );
        let profile = data.iam_instance_profile().and_then(|p| p.name());
        let tenancy = data
            .placement()
            .and_then(|p| p.tenancy())
            .map_or("default", |t| t.as_str());
        let mut instance = Instance {
            instance_type: t,
            zone: candidate.zone.clone(),
            zone_id,
            subnet_id,
            capacity_type: candidate.pool.capacity_type(),
            price_per_hour: candidate.price.unwrap_or_default(),
            image_id: candidate.image_id.clone(),
            bootstrap: Arc::clone(&candidate.template.bootstrap),
            ephemeral_storage_bytes: ephemeral_storage_bytes(
                t,
                data,
                &candidate.template.bootstrap,
            ),
            efa_interfaces: efa_interfaces(data),
            security_group_ids: security_groups(data),
            instance_profile: profile.map(ToOwned::to_owned),
            tenancy: tenancy.to_owned(),
            capacity_reservation_id: reservation_of(data),
            tags,
            fleet_id: fleet_id.to_owned(),
            spot_request_id,
            private_ip,
            addresses: addresses(t),
            launched_at: now,
            visible_at: times[0],
            running_at: times[1],
            registers_at: times[2],
            ready_at: times[3],
            shutting_down_at: None,
            terminated_at: None,
            termination_reason: None,
            interruption_at: None,
            id,
        };
        instance.interruption_at = self.reclaim_time(&instance);
        Some(instance)
    }

    /// (visible, running, registers, ready) of an instance launched now.
    fn boot_times(&mut self, now: Timestamp) -> [Timestamp; 4] {
        let after = |millis: u64| {
            let millis = i64::try_from(millis).unwrap_or_default();
            now.checked_add(SignedDuration::from_millis(millis))
                .unwrap_or(now)
        };
        let visible = self.config.faults.visibility_delay_seconds_max * 1_000;
        let (low, high) = self.config.boot_seconds;
        let registers = self.chance.between(low * 1_000, high * 1_000);
        [
            after(self.chance.between(0, visible)),
            after(self.chance.between(4_000, 9_000).min(registers)),
            after(registers),
            after(registers + self.chance.between(2_000, 9_000)),
        ]
    }

    /// When EC2 will take a spot instance back, if reclaims are switched on and it is among them.
    fn reclaim_time(&self, instance: &Instance) -> Option<Timestamp> {
        let per_hour = self.config.faults.spot_interruptions_per_hour;
        if per_hour <= 0.0 || instance.capacity_type != CapacityType::Spot {
            return None;
        }
        let chance = hash_unit(self.config.seed, &["reclaim", &instance.id]);
        // Exponential waiting time with that rate.
        let hours = -(1.0 - chance).ln() / per_hour;
        let seconds = SignedDuration::try_from_secs_f64((hours * 3_600.0).min(1e9)).ok()?;
        instance.launched_at.checked_add(seconds).ok()
    }
}

/// Addresses that an instance takes from its subnet: its first interface, filled by the VPC CNI.
fn addresses(t: &InstanceType) -> i32 {
    t.ipv4_per_interface.max(1)
}

fn reservation_of(data: &RequestLaunchTemplateData) -> Option<String> {
    let target = data
        .capacity_reservation_specification()?
        .capacity_reservation_target()?;
    target.capacity_reservation_id().map(ToOwned::to_owned)
}

fn security_groups(data: &RequestLaunchTemplateData) -> Vec<String> {
    let first = data
        .network_interfaces()
        .first()
        .map(|interface| interface.groups().to_vec());
    first
        .filter(|groups| !groups.is_empty())
        .unwrap_or_else(|| data.security_group_ids().to_vec())
}

fn efa_interfaces(data: &RequestLaunchTemplateData) -> i64 {
    let efa = [
        NetworkInterfaceCreationType::Efa,
        NetworkInterfaceCreationType::EfaOnly,
    ];
    let is_efa = |name: &str| efa.iter().any(|kind| kind.as_str() == name);
    let interfaces = data
        .network_interfaces()
        .iter()
        .filter_map(|i| i.interface_type());
    i64::try_from(interfaces.filter(|name| is_efa(name)).count()).unwrap_or_default()
}

/// Local disks as one volume if the kubelet was told so, else the largest EBS volume.
fn ephemeral_storage_bytes(
    t: &InstanceType,
    data: &RequestLaunchTemplateData,
    bootstrap: &Bootstrap,
) -> i64 {
    if let (true, Some(store)) = (bootstrap.raid0, t.instance_store) {
        return store.total_gb * 1_000_000_000;
    }
    let sizes = data
        .block_device_mappings()
        .iter()
        .filter_map(|mapping| mapping.ebs()?.volume_size());
    i64::from(sizes.max().unwrap_or_default()).max(DEFAULT_EPHEMERAL_GIB) * GIB
}

fn lifecycle(candidate: &Candidate) -> InstanceLifecycle {
    if candidate.pool.is_spot() {
        InstanceLifecycle::Spot
    } else {
        InstanceLifecycle::OnDemand
    }
}

fn error(candidate: &Candidate, code: &str, message: &str) -> CreateFleetError {
    CreateFleetError::builder()
        .launch_template_and_overrides(response(candidate))
        .lifecycle(lifecycle(candidate))
        .error_code(code)
        .error_message(message)
        .build()
}

fn response(candidate: &Candidate) -> LaunchTemplateAndOverridesResponse {
    let specification = FleetLaunchTemplateSpecification::builder()
        .launch_template_id(&candidate.template.id)
        .version("1");
    debug_assert!(!candidate.template.name.is_empty(), "a template has a name");
    let overrides = FleetLaunchTemplateOverrides::builder()
        .instance_type(Ec2InstanceType::from(candidate.type_name.as_str()))
        .availability_zone(&candidate.zone)
        .image_id(&candidate.image_id)
        .set_priority((candidate.priority < f64::MAX).then_some(candidate.priority));
    LaunchTemplateAndOverridesResponse::builder()
        .launch_template_specification(specification.build())
        .overrides(overrides.build())
        .build()
}

/// Only `instant` fleets answer with instances; the seam asks for no other.
pub(super) fn check_type(input: &CreateFleetInput) -> ApiResult<()> {
    match input.r#type {
        None | Some(FleetType::Instant) => Ok(()),
        Some(_) => Err(ApiError::client(
            "UnsupportedOperation",
            "only fleets of type instant exist here",
        )),
    }
}
