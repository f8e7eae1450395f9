//! The instance that a fleet makes: its addresses, disks and tags, and the moments of its life.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::CapacityType;
use aws_sdk_ec2::operation::create_fleet::CreateFleetInput;
use aws_sdk_ec2::types::{NetworkInterfaceCreationType, RequestLaunchTemplateData, ResourceType};
use jiff::{SignedDuration, Timestamp};

use super::PossibleOverride;
use crate::catalogue::CatalogueEntry;
use crate::ec2::AccountState;
use crate::ec2::bootstrap::KubeletSettings;
use crate::ec2::filters::tag_map;
use crate::ec2::instance::{InstanceEvent, SimulatedInstance};
use crate::random::hash_unit;

const GIB: i64 = 1 << 30;
/// The volume that images bring along.
pub(in crate::ec2) const DEFAULT_EPHEMERAL_BYTES: i64 = 20 * GIB;

impl AccountState {
    /// Takes an instance from its pool and tells of it.
    pub(super) fn launch(
        &mut self,
        input: &CreateFleetInput,
        candidate: &PossibleOverride,
        fleet: &str,
    ) -> Option<String> {
        let instance = self.new_instance(input, candidate, fleet)?;
        let id = instance.id.clone();
        self.occupy(&instance);
        self.launches += 1;
        self.instances.insert(id.clone(), instance);
        self.tell(&InstanceEvent::Launched(id.clone()));
        Some(id)
    }

    fn new_instance(
        &mut self,
        input: &CreateFleetInput,
        candidate: &PossibleOverride,
        fleet_id: &str,
    ) -> Option<SimulatedInstance> {
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
        let profile = data.iam_instance_profile().and_then(|p| p.name());
        let tenancy = data
            .placement()
            .and_then(|p| p.tenancy())
            .map_or("default", |t| t.as_str());
        let mut instance = SimulatedInstance {
            instance_type: t,
            zone: candidate.zone.clone(),
            zone_id,
            subnet_id,
            capacity_type: candidate.pool.capacity_type(),
            price_per_hour: candidate.price.unwrap_or_default(),
            image_id: candidate.image_id.clone(),
            kubernetes_version: self.config.kubernetes_version.clone(),
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
            placement_group: self.place_in_group(data.placement()),
            capacity_reservation_id: reservation_of(data),
            tags: instance_tags(input, fleet_id, &candidate.template.id),
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
            reboots: 0,
            failed_check: None,
            scheduled_event: None,
            termination_reason: None,
            notice_at: None,
            interruption_at: None,
            id,
        };
        instance.notice_at = self.notice_time(&instance);
        Some(instance)
    }

    /// (visible, running, registers, ready) of an instance launched now.
    pub(in crate::ec2) fn boot_times(&mut self, now: Timestamp) -> [Timestamp; 4] {
        let after = |millis: u64| {
            let millis = i64::try_from(millis).unwrap_or_default();
            now.checked_add(SignedDuration::from_millis(millis))
                .unwrap_or(now)
        };
        let visible = self.config.faults.visibility_delay_seconds_max * 1_000;
        let (low, high) = self.config.boot_millis;
        let registers = self.chance.between(low, high);
        let (ready_low, ready_high) = self.config.ready_millis;
        [
            after(self.chance.between(0, visible)),
            after(self.chance.between(4_000, 9_000).min(registers)),
            after(registers),
            after(registers + self.chance.between(ready_low, ready_high)),
        ]
    }

    /// When EC2 will give a spot instance notice, if reclaims are switched on.
    fn notice_time(&self, instance: &SimulatedInstance) -> Option<Timestamp> {
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
pub(in crate::ec2) fn addresses(t: &CatalogueEntry) -> i32 {
    t.ipv4_per_interface.max(1)
}

/// Those that the request asks for, and those that EC2 adds.
fn instance_tags(
    input: &CreateFleetInput,
    fleet_id: &str,
    template_id: &str,
) -> BTreeMap<String, String> {
    let specifications = input.tag_specifications.as_deref().unwrap_or_default();
    let of_instance = specifications
        .iter()
        .filter(|specification| specification.resource_type == Some(ResourceType::Instance))
        .flat_map(|specification| specification.tags().to_vec());
    let mut tags = tag_map(&of_instance.collect::<Vec<_>>());
    tags.insert("aws:ec2:fleet-id".to_owned(), fleet_id.to_owned());
    tags.insert(
        "aws:ec2launchtemplate:id".to_owned(),
        template_id.to_owned(),
    );
    tags
}

pub(super) fn reservation_of(data: &RequestLaunchTemplateData) -> Option<String> {
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
    t: &CatalogueEntry,
    data: &RequestLaunchTemplateData,
    bootstrap: &KubeletSettings,
) -> i64 {
    if bootstrap.raid0
        && let Some(store) = t.instance_store
    {
        return store.total_gb * 1_000_000_000;
    }
    let sizes = data
        .block_device_mappings()
        .iter()
        .filter_map(|mapping| mapping.ebs()?.volume_size());
    (i64::from(sizes.max().unwrap_or_default()) * GIB).max(DEFAULT_EPHEMERAL_BYTES)
}
