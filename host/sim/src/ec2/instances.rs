//! DescribeInstances, TerminateInstances, CreateTags, and the taking back of spot instances.
//!
//! Tells nothing of an instance before it is visible: EC2 lists what it launched a while later.

use apis::CapacityType;
use aws::seam::{ApiError, ApiResult};
use aws_sdk_ec2::operation::create_tags::{CreateTagsInput, CreateTagsOutput};
use aws_sdk_ec2::operation::describe_instances::{DescribeInstancesInput, DescribeInstancesOutput};
use aws_sdk_ec2::operation::reboot_instances::{RebootInstancesInput, RebootInstancesOutput};
use aws_sdk_ec2::operation::terminate_instances::{
    TerminateInstancesInput, TerminateInstancesOutput,
};
use aws_sdk_ec2::types::{
    ArchitectureValues, GroupIdentifier, IamInstanceProfile, Instance as Ec2Instance,
    InstanceLifecycleType, InstanceNetworkInterface, InstanceState as Ec2InstanceState,
    InstanceStateChange, InstanceStateName, InstanceType as Ec2InstanceType, Placement,
    Reservation, Tenancy,
};
use jiff::{SignedDuration, Timestamp};

use super::filters::{matches, page, tag_list, tag_map};
use super::instance::{InstanceEvent, InstanceState, SimulatedInstance, TerminationReason};
use super::instance_types::dry_run;
use super::market::CapacityPool;
use super::network::ACCOUNT;
use super::{AccountState, date_time};

/// EC2's notice before it takes a spot instance.
const INTERRUPTION_NOTICE: SignedDuration = SignedDuration::from_mins(2);

impl AccountState {
    pub(super) fn describe_instances(
        &self,
        input: &DescribeInstancesInput,
    ) -> ApiResult<DescribeInstancesOutput> {
        let now = self.now();
        let ids = input.instance_ids.as_deref().unwrap_or_default();
        self.known(ids, now)?;
        let filters = input.filters.as_deref().unwrap_or_default();
        let found = self
            .instances
            .values()
            .filter(|i| i.visible_at <= now && (ids.is_empty() || ids.contains(&i.id)))
            .filter(|i| matches(filters, &i.tags, |name| attribute(i, name, now)));
        let reservation = |i: &SimulatedInstance| {
            Reservation::builder()
                .reservation_id(i.fleet_id.replacen("fleet", "r", 1))
                .owner_id(ACCOUNT)
                .instances(self.description(i, now))
                .build()
        };
        let (reservations, next) = page(
            found.map(reservation).collect(),
            input.max_results,
            input.next_token.as_deref(),
        )?;
        Ok(DescribeInstancesOutput::builder()
            .set_reservations(Some(reservations))
            .set_next_token(next)
            .build())
    }

    pub(super) fn terminate_instances(
        &mut self,
        input: &TerminateInstancesInput,
    ) -> ApiResult<TerminateInstancesOutput> {
        let now = self.now();
        let ids = input.instance_ids.as_deref().unwrap_or_default();
        self.known(ids, now)?;
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        let mut changes = Vec::new();
        for id in ids {
            let before = self.instances.get(id).map(|instance| instance.state(now));
            self.begin_termination(id, TerminationReason::User);
            let after = self.instances.get(id).map(|instance| instance.state(now));
            changes.push(
                InstanceStateChange::builder()
                    .instance_id(id)
                    .set_previous_state(before.map(state))
                    .set_current_state(after.map(state))
                    .build(),
            );
        }
        Ok(TerminateInstancesOutput::builder()
            .set_terminating_instances(Some(changes))
            .build())
    }

    pub(super) fn reboot_instances(
        &mut self,
        input: &RebootInstancesInput,
    ) -> ApiResult<RebootInstancesOutput> {
        let now = self.now();
        let ids = input.instance_ids.as_deref().unwrap_or_default();
        self.known(ids, now)?;
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        for id in ids {
            let Some(instance) = self.instances.get_mut(id) else {
                continue;
            };
            if instance.state(now) != InstanceState::Running {
                let message =
                    format!("The instance '{id}' is not in a state from which it can be rebooted");
                return Err(ApiError::client("IncorrectInstanceState", message));
            }
            instance.reboots += 1;
            self.tell(&InstanceEvent::Rebooted(id.clone()));
        }
        Ok(RebootInstancesOutput::builder().build())
    }

    pub(super) fn create_tags(&mut self, input: &CreateTagsInput) -> ApiResult<CreateTagsOutput> {
        let now = self.now();
        let resources = input.resources.as_deref().unwrap_or_default();
        let instances: Vec<String> = resources
            .iter()
            .filter(|id| id.starts_with("i-"))
            .cloned()
            .collect();
        self.known(&instances, now)?;
        if input.dry_run == Some(true) {
            return Err(dry_run());
        }
        let tags = tag_map(input.tags.as_deref().unwrap_or_default());
        for id in &instances {
            if let Some(instance) = self.instances.get_mut(id) {
                instance.tags.extend(tags.clone());
            }
        }
        Ok(CreateTagsOutput::builder().build())
    }

    /// EC2's answer when any of the ids is malformed or not (yet) known.
    pub(super) fn known(&self, ids: &[String], now: Timestamp) -> ApiResult<()> {
        if let Some(id) = ids.iter().find(|id| !id.starts_with("i-")) {
            let message = format!("Invalid id: \"{id}\"");
            return Err(ApiError::client("InvalidInstanceID.Malformed", message));
        }
        let known = |id: &&String| {
            self.instances
                .get(*id)
                .is_some_and(|instance| instance.visible_at <= now)
        };
        let unknown: Vec<&str> = ids
            .iter()
            .filter(|id| !known(id))
            .map(String::as_str)
            .collect();
        match unknown.as_slice() {
            [] => Ok(()),
            [id] => Err(ApiError::client(
                "InvalidInstanceID.NotFound",
                format!("The instance ID '{id}' does not exist"),
            )),
            ids => Err(ApiError::client(
                "InvalidInstanceID.NotFound",
                format!("The instance IDs '{}' do not exist", ids.join(", ")),
            )),
        }
    }

    /// Sends an instance on its way out; nothing if it is on it already.
    pub(super) fn begin_termination(&mut self, id: &str, reason: TerminationReason) {
        let now = self.now();
        let (low, high) = self.config.termination_seconds;
        let seconds = i64::try_from(self.chance.between(low, high)).unwrap_or_default();
        let Some(instance) = self.instances.get_mut(id) else {
            return;
        };
        if instance.shutting_down_at.is_some() {
            return;
        }
        instance.shutting_down_at = Some(now);
        instance.terminated_at = now.checked_add(SignedDuration::from_secs(seconds)).ok();
        self.ending
            .extend(instance.terminated_at.map(|at| (at, id.to_owned())));
        instance.termination_reason = Some(reason);
        let capacity_type = instance.capacity_type;
        let pool = CapacityPool::new(instance.instance_type.name, &instance.zone, capacity_type);
        let (subnet, addresses) = (instance.subnet_id.clone(), instance.addresses);
        let reservation = instance.capacity_reservation_id.clone();
        if let Some(used) = self.used.get_mut(&pool) {
            *used = used.saturating_sub(1);
        }
        if let Some(record) = reservation.and_then(|id| self.reservations.get_mut(&id)) {
            record.used = record.used.saturating_sub(1);
        }
        if let Some(record) = self.subnets.iter_mut().find(|record| record.id == subnet) {
            record.free += addresses;
        }
        self.terminations += 1;
        self.tell(&InstanceEvent::ShuttingDown(id.to_owned()));
    }

    pub(super) fn interrupt(&mut self, id: &str) -> bool {
        let now = self.now();
        let Some(instance) = self.instances.get_mut(id) else {
            return false;
        };
        let spot = instance.capacity_type == CapacityType::Spot;
        if !spot || instance.shutting_down_at.is_some() || instance.interruption_at.is_some() {
            return false;
        }
        instance.interruption_at = now.checked_add(INTERRUPTION_NOTICE).ok();
        self.tell(&InstanceEvent::SpotInterruptionWarning(id.to_owned()));
        true
    }

    fn description(&self, i: &SimulatedInstance, now: Timestamp) -> Ec2Instance {
        let groups: Vec<GroupIdentifier> = i
            .security_group_ids
            .iter()
            .map(|id| self.group(id))
            .collect();
        let vpc = self.subnets.first().map(|subnet| subnet.vpc_id.clone());
        let profile = i.instance_profile.as_ref().map(|name| {
            let arn = format!("arn:aws:iam::{ACCOUNT}:instance-profile/{name}");
            IamInstanceProfile::builder().arn(arn).build()
        });
        let architecture = i
            .instance_type
            .architectures
            .last()
            .copied()
            .unwrap_or("x86_64");
        let lifecycle = matches!(i.capacity_type, CapacityType::Spot);
        Ec2Instance::builder()
            .instance_id(&i.id)
            .image_id(&i.image_id)
            .instance_type(Ec2InstanceType::from(i.instance_type.name))
            .architecture(ArchitectureValues::from(architecture))
            .launch_time(date_time(i.launched_at))
            .placement(
                Placement::builder()
                    .availability_zone(&i.zone)
                    .availability_zone_id(&i.zone_id)
                    .tenancy(Tenancy::from(i.tenancy.as_str()))
                    .set_group_id(i.placement_group.as_ref().map(|it| it.0.clone()))
                    // As with the other things that EC2 settles while the machine starts.
                    .set_partition_number(
                        i.placement_group
                            .as_ref()
                            .and_then(|it| it.1)
                            .filter(|_| now >= i.running_at),
                    )
                    .build(),
            )
            .state(state(i.state(now)))
            .subnet_id(&i.subnet_id)
            .set_vpc_id(vpc)
            .private_ip_address(&i.private_ip)
            .private_dns_name(i.private_dns_name(&self.config.region))
            .set_spot_instance_request_id(i.spot_request_id.clone())
            .set_instance_lifecycle(lifecycle.then_some(InstanceLifecycleType::Spot))
            .set_capacity_reservation_id(i.capacity_reservation_id.clone())
            .set_iam_instance_profile(profile)
            .network_interfaces(
                InstanceNetworkInterface::builder()
                    .subnet_id(&i.subnet_id)
                    .private_ip_address(&i.private_ip)
                    .set_groups(Some(groups.clone()))
                    .build(),
            )
            .set_security_groups(Some(groups))
            .set_tags(Some(tag_list(&i.tags)))
            .build()
    }

    fn group(&self, id: &str) -> GroupIdentifier {
        let name = self
            .security_groups
            .iter()
            .find(|group| group.id == id)
            .map(|g| g.name.clone());
        GroupIdentifier::builder()
            .group_id(id)
            .set_group_name(name)
            .build()
    }
}

fn attribute(i: &SimulatedInstance, name: &str, now: Timestamp) -> Vec<String> {
    match name {
        "instance-id" => vec![i.id.clone()],
        "instance-state-name" => vec![i.state(now).as_str().to_owned()],
        "instance-type" => vec![i.instance_type.name.to_owned()],
        "availability-zone" => vec![i.zone.clone()],
        "subnet-id" => vec![i.subnet_id.clone()],
        "image-id" => vec![i.image_id.clone()],
        "private-ip-address" => vec![i.private_ip.clone()],
        _ => Vec::new(),
    }
}

fn state(state: InstanceState) -> Ec2InstanceState {
    let (code, name) = match state {
        InstanceState::Pending => (0, InstanceStateName::Pending),
        InstanceState::Running => (16, InstanceStateName::Running),
        InstanceState::ShuttingDown => (32, InstanceStateName::ShuttingDown),
        InstanceState::Terminated => (48, InstanceStateName::Terminated),
    };
    Ec2InstanceState::builder().code(code).name(name).build()
}
