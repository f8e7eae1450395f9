//! EC2NodeClass: how nodes are made on EC2.
//!
//! Wire types only. Answers to the AWS provider's `pkg/apis/v1/ec2nodeclass.go`.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema;

mod ami_family;
mod block_device;
mod selectors;
mod status;

pub use ami_family::{Alias, AmiFamily};
pub use block_device::{BlockDevice, BlockDeviceMapping};
pub use selectors::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use status::{
    Ami, CapacityReservation, CapacityReservationState, CapacityReservationType,
    Ec2NodeClassStatus, SecurityGroup, Subnet,
};

/// How nodes are made on EC2.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    root = "Ec2NodeClass",
    plural = "ec2nodeclasses",
    category = "karpenter",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    status = "Ec2NodeClassStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Role", "type": "string", "jsonPath": ".spec.role", "priority": 1}"#,
    crates(kube_core = "::kube_core"),
    doc = "EC2NodeClass says how nodes are made on EC2."
)]
#[serde(rename_all = "camelCase")]
pub struct Ec2NodeClassSpec {
    /// Which subnets nodes may be in; a subnet that fits any term counts.
    #[schemars(length(max = 30))]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Which security groups nodes get; a group that fits any term counts.
    #[schemars(length(max = 30))]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Which capacity reservations nodes may use; a reservation that fits any term counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Placement group that nodes are put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether nodes get public addresses; the subnet decides when absent.
    #[serde(
        default,
        rename = "associatePublicIPAddress",
        skip_serializing_if = "Option::is_none"
    )]
    pub associate_public_ip_address: Option<bool>,
    /// Number of address prefixes to give the first network interface at launch.
    #[serde(
        default,
        rename = "ipPrefixCount",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Which machine images nodes may run; the newest that fits is taken.
    #[schemars(length(min = 1, max = 30))]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// Family of the images, which decides the form of the user data; needed unless an alias tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// User data, merged with what the node needs to join, in the form of the family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// IAM role of nodes, for which an instance profile is made. Excludes instanceProfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self != ''", "message": "role cannot be empty"}]))]
    pub role: Option<String>,
    /// Instance profile of nodes. Excludes role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "x-kubernetes-validations" = [{"rule": "self != ''", "message": "instanceProfile cannot be empty"}]
    ))]
    pub instance_profile: Option<String>,
    /// Tags for everything that is made on EC2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Configuration of the kubelet, in the form of kubelet.config.k8s.io/v1beta1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "kubelet_schema")]
    pub kubelet: BTreeMap<String, serde_json::Value>,
    /// Volumes of nodes; those of the family when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// How local disks are used; not at all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Network interfaces of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 150))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Whether instances send metrics every minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// The instance metadata service.
    #[serde(
        default = "MetadataOptions::required_tokens",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("default" = {
        "httpEndpoint": "enabled",
        "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1,
        "httpTokens": "required",
    }))]
    pub metadata_options: Option<MetadataOptions>,
    /// How long idle connections are tracked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Reserved by EC2: the Context of CreateFleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Options of the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
}

/// Any map: the kubelet's own form changes from version to version, so the controller judges it.
fn kubelet_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true},
    })
}

schema::words! {
    /// How local disks are used.
    InstanceStorePolicy {
        /// All as one striped file system for pods and images.
        Raid0 = "RAID0",
    }
}

schema::words! {
    /// Kind of a network interface.
    InterfaceType {
        /// Addresses for the node and pods.
        Interface = "interface",
        /// Elastic fabric traffic only.
        EfaOnly = "efa-only",
    }
}

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Index of the network card.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Index of the device on the card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// Kind of the interface.
    pub interface_type: InterfaceType,
}

/// The instance metadata service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// Whether the service answers at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"], "default" = "enabled"))]
    pub http_endpoint: Option<String>,
    /// Whether it answers over IPv6.
    #[serde(
        default,
        rename = "httpProtocolIPv6",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(extend("enum" = ["enabled", "disabled"], "default" = "disabled"))]
    pub http_protocol_ipv6: Option<String>,
    /// How many hops an answer may travel; 1 keeps it from pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether sessions need a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["required", "optional"], "default" = "required"))]
    pub http_tokens: Option<String>,
}

impl MetadataOptions {
    /// The API's default: on for the node, closed to pods, tokens required.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "serde's default must have the field's type"
    )]
    fn required_tokens() -> Option<Self> {
        Some(Self {
            http_endpoint: Some("enabled".to_owned()),
            http_protocol_ipv6: Some("disabled".to_owned()),
            http_put_response_hop_limit: Some(1),
            http_tokens: Some("required".to_owned()),
        })
    }
}

/// How long idle connections are tracked, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Established TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// UDP streams: flows with more than one request and response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// Other UDP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// Options of the processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether the instance may itself run virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["enabled", "disabled"]))]
    pub nested_virtualization: Option<String>,
}
