//! What of a class shapes its instance types; classes of one shape share one list.
//!
//! No price and nothing of availability may be part of a shape, or each of their changes would build all types anew.
//! Answers to the cache key of Karpenter's `pkg/providers/instancetype/instancetype.go`, with the fields the original
//! forgets (family, CPU options).

use std::collections::BTreeMap;

use apis::ec2nodeclass::{
    BlockDeviceMapping, CapacityReservation, InstanceStorePolicy, InterfaceType, NetworkInterface,
};
use apis::{AmiFamily, Ec2NodeClass};

use crate::ami_family::default_block_device_mappings;
use crate::cache::fingerprint;
use crate::kubelet::Kubelet;
use crate::kubelet::expressions::SettledKubelet;
use crate::options::AwsOptions;
use crate::placement_group::PlacementGroup;

use super::reported::ReportedMemory;

/// A zone in which a class has subnets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClassZone {
    /// Where the class's status tells it.
    pub(crate) zone_id: Option<String>,
    /// Subnets of the class in the zone.
    pub(crate) subnet_ids: Vec<String>,
}

/// What of a class, and of the settings, shapes its instance types.
#[derive(Debug, Clone)]
pub(crate) struct ClassShape {
    pub(crate) family: AmiFamily,
    pub(crate) region: String,
    /// By name.
    pub(crate) zones: BTreeMap<String, ClassZone>,
    pub(crate) kubelet: Kubelet,
    /// Those of the class, or else of the family.
    pub(crate) block_device_mappings: Vec<BlockDeviceMapping>,
    /// Whether local disks are the node's ephemeral storage.
    pub(crate) is_raid0: bool,
    pub(crate) network_interfaces: Vec<NetworkInterface>,
    /// Prefixes of addresses on each interface.
    pub(crate) ip_prefix_count: Option<i32>,
    pub(crate) wants_nested_virtualization: bool,
    pub(crate) wants_connection_tracking: bool,
    pub(crate) placement_group: Option<PlacementGroup>,
    /// By instance type: there may be thousands.
    reservations: BTreeMap<String, Vec<CapacityReservation>>,
    /// Share of the memory that pods do not get, 0.075 by default.
    pub(crate) vm_memory_overhead_percent: f64,
    /// Interfaces that pods get no addresses of.
    pub(crate) reserved_enis: i64,
    /// What nodes with the class's images reported.
    pub(crate) reported_memory: ReportedMemory,
}

impl ClassShape {
    /// The shape of a class as its spec and status have it.
    pub(crate) fn of(
        node_class: &Ec2NodeClass,
        placement_group: Option<&PlacementGroup>,
        options: &AwsOptions,
    ) -> Self {
        let spec = &node_class.spec;
        let family = node_class.ami_family();
        let block_device_mappings = if spec.block_device_mappings.is_empty() {
            default_block_device_mappings(family)
        } else {
            spec.block_device_mappings.clone()
        };
        let mut kubelet = Kubelet::parse(&spec.kubelet).0;
        if !options.aws_feature_gates.node_class_cel {
            kubelet.expressions.clear();
        }
        let nested = spec
            .cpu_options
            .as_ref()
            .and_then(|cpu| cpu.nested_virtualization.as_deref());
        Self {
            family,
            region: options.region.clone(),
            zones: zones(node_class),
            kubelet,
            block_device_mappings,
            is_raid0: spec.instance_store_policy == Some(InstanceStorePolicy::Raid0),
            network_interfaces: spec.network_interfaces.clone(),
            ip_prefix_count: spec.ip_prefix_count,
            wants_nested_virtualization: nested == Some("enabled"),
            wants_connection_tracking: spec.connection_tracking.is_some(),
            placement_group: placement_group.cloned(),
            reservations: if options.reserved_capacity {
                reservations(node_class)
            } else {
                BTreeMap::new()
            },
            vm_memory_overhead_percent: options.vm_memory_overhead_percent,
            reserved_enis: i64::from(options.reserved_enis),
            reported_memory: ReportedMemory::default(),
        }
    }

    /// The reservations of instances of a type.
    pub(crate) fn reservations_of(&self, instance_type: &str) -> &[CapacityReservation] {
        let reservations = self.reservations.get(instance_type);
        reservations.map_or(&[], Vec::as_slice)
    }

    pub(super) fn with_max_pods(&self, max_pods: Option<i64>) -> Self {
        let mut shape = self.clone();
        shape.kubelet.max_pods = max_pods.or(shape.kubelet.max_pods);
        shape
    }

    /// As it is on one type, on which the expressions come to this.
    pub(super) fn settled(&self, on_type: &SettledKubelet) -> Self {
        let mut shape = self.with_max_pods(on_type.max_pods);
        shape.kubelet = shape.kubelet.with_amounts(&on_type.amounts);
        shape
    }

    /// Equal for shapes that are equal.
    pub(crate) fn key(&self) -> u64 {
        // Debug text names every field, so a new one cannot be forgotten here.
        fingerprint([format!("{self:?}").as_str()])
    }

    /// Interfaces that carry EFA traffic only, on the given card or on any.
    pub(crate) fn efa_only_count(&self, card: Option<i32>) -> i64 {
        let matches = |nic: &&NetworkInterface| {
            nic.interface_type == InterfaceType::EfaOnly
                && card.is_none_or(|card| nic.network_card_index == card)
        };
        i64::try_from(self.network_interfaces.iter().filter(matches).count()).unwrap_or(i64::MAX)
    }
}

fn reservations(node_class: &Ec2NodeClass) -> BTreeMap<String, Vec<CapacityReservation>> {
    let mut reservations: BTreeMap<String, Vec<CapacityReservation>> = BTreeMap::new();
    let status = node_class.status.iter();
    for reservation in status.flat_map(|status| &status.capacity_reservations) {
        let of_type = reservations
            .entry(reservation.instance_type.clone())
            .or_default();
        of_type.push(reservation.clone());
    }
    reservations
}

fn zones(node_class: &Ec2NodeClass) -> BTreeMap<String, ClassZone> {
    let mut zones: BTreeMap<String, ClassZone> = BTreeMap::new();
    for subnet in node_class.status.iter().flat_map(|status| &status.subnets) {
        let zone = zones.entry(subnet.zone.clone()).or_default();
        zone.zone_id = zone.zone_id.take().or_else(|| subnet.zone_id.clone());
        zone.subnet_ids.push(subnet.id.clone());
        // The status orders subnets by free addresses, which must not make a new shape.
        zone.subnet_ids.sort();
    }
    zones
}
