//! What an EC2NodeClass was resolved to.
//!
//! Wire types only. Answers to the AWS provider's `pkg/apis/v1/ec2nodeclass_status.go`.

use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema;

/// What the class was resolved to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ec2NodeClassStatus {
    /// Subnets in use, those with most free addresses first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
    /// Security groups in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<SecurityGroup>,
    /// Capacity reservations in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<CapacityReservation>,
    /// Machine images in use, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amis: Vec<Ami>,
    /// Instance profile in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Whether the class is valid and ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A subnet in use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subnet {
    /// Id of the subnet.
    pub id: String,
    /// Name of its zone.
    pub zone: String,
    /// Id of its zone, the same in every account.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
}

/// A security group in use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    /// Id of the group.
    pub id: String,
    /// Name of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A machine image in use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ami {
    /// Id of the image.
    pub id: String,
    /// Whether its owner has deprecated the image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Name of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Instance types the image fits.
    #[schemars(schema_with = "requirements_schema")]
    pub requirements: Vec<NodeSelectorRequirement>,
}

fn requirements_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "description": "A requirement on a node label.",
            "required": ["key", "operator"],
            "properties": {
                "key": {"type": "string", "description": "Key of the label."},
                "operator": {"type": "string", "description": "How the label relates to the values."},
                "values": {
                    "type": "array",
                    "description": "Values of the label.",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "atomic",
                },
            },
        },
    })
}

schema::words! {
    /// Kind of a capacity reservation.
    #[derive(Default)]
    CapacityReservationType {
        /// On-demand capacity.
        #[default]
        Default = "default",
        /// A block of capacity with a beginning and an end.
        CapacityBlock = "capacity-block",
    }
}

schema::words! {
    /// Whether a capacity reservation takes new instances.
    #[derive(Default)]
    CapacityReservationState {
        /// It does.
        #[default]
        Active = "active",
        /// A capacity block near its end: it does not.
        Expiring = "expiring",
    }
}

/// A capacity reservation in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityReservation {
    /// Zone of the reservation.
    pub availability_zone: String,
    /// When the reservation ends, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Time>,
    /// Id of the reservation.
    #[schemars(regex(pattern = "^cr-[0-9a-z]+$"))]
    pub id: String,
    /// Which instances the reservation accepts.
    #[schemars(extend("enum" = ["open", "targeted"]))]
    pub instance_match_criteria: String,
    /// Instance type of the reservation.
    pub instance_type: String,
    /// Account that owns the reservation.
    #[serde(rename = "ownerID")]
    #[schemars(regex(pattern = "^[0-9]{12}$"))]
    pub owner_id: String,
    /// Kind of the reservation.
    #[serde(default)]
    pub reservation_type: CapacityReservationType,
    /// Whether its owner may take it back.
    #[serde(default)]
    #[schemars(extend("default" = null))]
    pub interruptible: bool,
    /// Whether it takes new instances.
    #[serde(default)]
    pub state: CapacityReservationState,
}
