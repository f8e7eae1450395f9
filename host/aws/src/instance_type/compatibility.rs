//! Whether a class can use an instance type at all.
//!
//! Prices, zones and availability do not matter here. Answers to Karpenter's
//! `pkg/providers/instancetype/compatibility`.

use apis::AmiFamily;
use aws_sdk_ec2::types::InstanceTypeHypervisor;

use super::facts::InstanceTypeFacts;
use super::shape::ClassShape;

/// Why the class cannot use the type, if it cannot.
pub(crate) fn incompatibility(
    name: &str,
    info: &InstanceTypeFacts,
    shape: &ClassShape,
) -> Option<&'static str> {
    if shape.family == AmiFamily::Al2023 && name.starts_with("a1.") {
        return Some("AL2023 does not run on a1");
    }
    if !shape.network_interfaces.is_empty() && !has_interfaces(info, shape) {
        return Some("the type lacks the network interfaces of the class");
    }
    if shape.wants_nested_virtualization && !info.nests_virtual_machines {
        return Some("the type cannot nest virtual machines");
    }
    if shape.wants_connection_tracking && info.hypervisor != Some(InstanceTypeHypervisor::Nitro) {
        return Some("the type cannot set connection tracking");
    }
    if let Some(group) = &shape.placement_group {
        let mut strategies = info.placement_strategies.iter();
        if !strategies.any(|it| it.as_str() == group.strategy) {
            return Some("the type does not support the placement group's strategy");
        }
    }
    None
}

fn has_interfaces(info: &InstanceTypeFacts, shape: &ClassShape) -> bool {
    let network = &info.network;
    if !network.has_ena {
        return false;
    }
    let fits = shape.network_interfaces.iter().all(|interface| {
        let mut cards = network.cards.iter();
        let card = cards.find(|card| card.index == interface.network_card_index);
        card.is_some_and(|card| card.interfaces > interface.device_index)
    });
    let prefixes = shape.ip_prefix_count.unwrap_or(0);
    fits && shape.efa_only_count(None) <= i64::from(network.efa_max)
        && prefixes < network.ipv4_per_interface
}

#[cfg(test)]
mod tests;
