//! Whether a class can use an instance type at all.
//!
//! Prices, zones and availability do not matter here. Answers to Karpenter's
//! `pkg/providers/instancetype/compatibility`.

use apis::AmiFamily;
use aws_sdk_ec2::types::{EnaSupport, InstanceTypeHypervisor, InstanceTypeInfo};

use super::shape::ClassShape;

/// Why the class cannot use the type, if it cannot.
pub(crate) fn incompatibility(
    name: &str,
    info: &InstanceTypeInfo,
    shape: &ClassShape,
) -> Option<&'static str> {
    if shape.family == AmiFamily::Al2023 && name.starts_with("a1.") {
        return Some("AL2023 does not run on a1");
    }
    if !shape.network_interfaces.is_empty() && !has_interfaces(info, shape) {
        return Some("the type lacks the network interfaces of the class");
    }
    if shape.wants_nested_virtualization && !has_nested_virtualization(info) {
        return Some("the type cannot nest virtual machines");
    }
    if shape.wants_connection_tracking && info.hypervisor() != Some(&InstanceTypeHypervisor::Nitro)
    {
        return Some("the type cannot set connection tracking");
    }
    if let Some(group) = &shape.placement_group {
        let strategies = info
            .placement_group_info()
            .map(aws_sdk_ec2::types::PlacementGroupInfo::supported_strategies);
        let is_supported = strategies
            .unwrap_or_default()
            .iter()
            .any(|s| s.as_str() == group.strategy);
        if !is_supported {
            return Some("the type does not support the placement group's strategy");
        }
    }
    None
}

fn has_nested_virtualization(info: &InstanceTypeInfo) -> bool {
    let features = info
        .processor_info()
        .map(aws_sdk_ec2::types::ProcessorInfo::supported_features);
    features
        .unwrap_or_default()
        .iter()
        .any(|feature| feature.as_str() == "nested-virtualization")
}

fn has_interfaces(info: &InstanceTypeInfo, shape: &ClassShape) -> bool {
    let Some(network) = info.network_info() else {
        return false;
    };
    if network
        .ena_support()
        .is_none_or(|support| *support == EnaSupport::Unsupported)
    {
        return false;
    }
    let fits = shape.network_interfaces.iter().all(|interface| {
        let card = network
            .network_cards()
            .iter()
            .find(|c| c.network_card_index() == Some(interface.network_card_index));
        card.and_then(aws_sdk_ec2::types::NetworkCardInfo::maximum_network_interfaces)
            .is_some_and(|max| max > interface.device_index)
    });
    let efa = network
        .efa_info()
        .and_then(aws_sdk_ec2::types::EfaInfo::maximum_efa_interfaces)
        .unwrap_or(0);
    let addresses = network.ipv4_addresses_per_interface().unwrap_or(0);
    let prefixes = shape.ip_prefix_count.unwrap_or(0);
    fits && shape.efa_only_count(None) <= i64::from(efa) && prefixes < addresses
}
