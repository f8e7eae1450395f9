//! Which parts of an EC2NodeClass are hashed, under which names.
//!
//! A part that is hashed otherwise drifts every node there is. Answers to the field order of the AWS provider's
//! `pkg/apis/v1/ec2nodeclass.go`.

use serde_json::Value;

use super::structure::{
    Struct, boolean, int32, int64, list, list_if_any, map_if_any, text, text_if_any,
};
use crate::ec2nodeclass::{
    BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, Ec2NodeClass,
    Ec2NodeClassSpec, MetadataOptions, NetworkInterface, PlacementGroupSelector,
};
use crate::quantity;

pub(super) fn node_class(node_class: &Ec2NodeClass, ca_bundle: &str) -> u64 {
    list([
        spec(&node_class.spec),
        text(node_class.ami_family().as_str()),
        text(ca_bundle),
        text(&kubelet(&node_class.spec)),
    ])
}

fn optional_text(value: Option<&String>) -> Option<u64> {
    value.map(|value| text(value))
}

fn spec(spec: &Ec2NodeClassSpec) -> u64 {
    let Ec2NodeClassSpec {
        // What the selectors pick is compared with the instance instead.
        subnet_selector_terms: _,
        security_group_selector_terms: _,
        capacity_reservation_selector_terms: _,
        placement_group_selector,
        associate_public_ip_address,
        ip_prefix_count: _,
        ami_selector_terms: _,
        // Hashed as resolved, beside the spec.
        ami_family: _,
        user_data,
        role,
        instance_profile,
        tags,
        // Hashed as text, beside the spec.
        kubelet: _,
        block_device_mappings,
        instance_store_policy,
        network_interfaces,
        detailed_monitoring,
        metadata_options,
        connection_tracking,
        context,
        cpu_options,
    } = spec;
    Struct::named("EC2NodeClassSpec")
        .field(
            "PlacementGroupSelector",
            placement_group_selector.as_ref().map(placement_group),
        )
        .field(
            "AssociatePublicIPAddress",
            associate_public_ip_address.map(boolean),
        )
        .field("UserData", optional_text(user_data.as_ref()))
        .field("Role", text_if_any(role.as_deref().unwrap_or("")))
        .field("InstanceProfile", optional_text(instance_profile.as_ref()))
        .field("Tags", map_if_any(tags))
        .field(
            "BlockDeviceMappings",
            list_if_any(block_device_mappings, block_device_mapping),
        )
        .field(
            "InstanceStorePolicy",
            instance_store_policy.map(|policy| text(policy.as_str())),
        )
        .field(
            "NetworkInterfaces",
            list_if_any(network_interfaces, network_interface),
        )
        .field("DetailedMonitoring", detailed_monitoring.map(boolean))
        .field(
            "MetadataOptions",
            metadata_options.as_ref().map(self::metadata_options),
        )
        .field(
            "ConnectionTracking",
            connection_tracking.as_ref().map(self::connection_tracking),
        )
        .field("Context", optional_text(context.as_ref()))
        .field("CPUOptions", cpu_options.as_ref().map(self::cpu_options))
        .value()
}

fn placement_group(selector: &PlacementGroupSelector) -> u64 {
    let PlacementGroupSelector { name, id } = selector;
    Struct::named("PlacementGroupSelector")
        .field("Name", optional_text(name.as_ref()))
        .field("ID", optional_text(id.as_ref()))
        .value()
}

fn block_device_mapping(mapping: &BlockDeviceMapping) -> u64 {
    let BlockDeviceMapping {
        device_name,
        ebs,
        root_volume,
    } = mapping;
    Struct::named("BlockDeviceMapping")
        .field("DeviceName", optional_text(device_name.as_ref()))
        .field("EBS", ebs.as_ref().map(block_device))
        .field("RootVolume", root_volume.then(|| boolean(true)))
        .value()
}

fn block_device(device: &BlockDevice) -> u64 {
    let BlockDevice {
        delete_on_termination,
        encrypted,
        iops,
        kms_key_id,
        snapshot_id,
        throughput,
        volume_initialization_rate,
        volume_size,
        volume_type,
    } = device;
    // A size that cannot be read never passed the API server; its raw text is as good as any.
    let size = |size: &str| text(&quantity::canonical(size).unwrap_or_else(|_| size.to_owned()));
    Struct::named("BlockDevice")
        .field("DeleteOnTermination", delete_on_termination.map(boolean))
        .field("Encrypted", encrypted.map(boolean))
        .field("IOPS", iops.map(int64))
        .field("KMSKeyID", optional_text(kms_key_id.as_ref()))
        .field("SnapshotID", optional_text(snapshot_id.as_ref()))
        .field("Throughput", throughput.map(int64))
        .field(
            "VolumeInitializationRate",
            volume_initialization_rate.map(int32),
        )
        .field(
            "VolumeSize",
            volume_size.as_ref().map(|quantity| size(&quantity.0)),
        )
        .field("VolumeType", optional_text(volume_type.as_ref()))
        .value()
}

fn network_interface(interface: &NetworkInterface) -> u64 {
    let NetworkInterface {
        network_card_index,
        device_index,
        interface_type,
    } = interface;
    let index = |index: &i32| (*index != 0).then(|| int32(*index));
    Struct::named("NetworkInterface")
        .field("NetworkCardIndex", index(network_card_index))
        .field("DeviceIndex", index(device_index))
        .field("InterfaceType", Some(text(interface_type.as_str())))
        .value()
}

fn metadata_options(options: &MetadataOptions) -> u64 {
    let MetadataOptions {
        http_endpoint,
        http_protocol_ipv6,
        http_put_response_hop_limit,
        http_tokens,
    } = options;
    Struct::named("MetadataOptions")
        .field("HTTPEndpoint", optional_text(http_endpoint.as_ref()))
        .field(
            "HTTPProtocolIPv6",
            optional_text(http_protocol_ipv6.as_ref()),
        )
        .field(
            "HTTPPutResponseHopLimit",
            http_put_response_hop_limit.map(int64),
        )
        .field("HTTPTokens", optional_text(http_tokens.as_ref()))
        .value()
}

fn connection_tracking(tracking: &ConnectionTracking) -> u64 {
    let ConnectionTracking {
        tcp_established_timeout,
        udp_stream_timeout,
        udp_timeout,
    } = tracking;
    Struct::named("ConnectionTracking")
        .field("TCPEstablishedTimeout", tcp_established_timeout.map(int32))
        .field("UDPStreamTimeout", udp_stream_timeout.map(int32))
        .field("UDPTimeout", udp_timeout.map(int32))
        .value()
}

fn cpu_options(options: &CpuOptions) -> u64 {
    let CpuOptions {
        nested_virtualization,
    } = options;
    Struct::named("CPUOptions")
        .field(
            "NestedVirtualization",
            optional_text(nested_virtualization.as_ref()),
        )
        .value()
}

/// The kubelet configuration as Go writes JSON: keys sorted, no spaces, HTML's signs escaped.
fn kubelet(spec: &Ec2NodeClassSpec) -> String {
    if spec.kubelet.is_empty() {
        return "null".to_owned();
    }
    let fields = spec
        .kubelet
        .iter()
        .map(|(key, value)| (key.clone(), sorted(value)));
    let text = Value::Object(fields.collect()).to_string();
    let escapes = [
        ('<', "u003c"),
        ('>', "u003e"),
        ('&', "u0026"),
        ('\u{2028}', "u2028"),
        ('\u{2029}', "u2029"),
    ];
    escapes.into_iter().fold(text, |text, (sign, escape)| {
        text.replace(sign, &format!("\\{escape}"))
    })
}

/// A value with every object's keys in order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| (key.clone(), sorted(value)))
                .collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
