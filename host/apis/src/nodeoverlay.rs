//! NodeOverlay: changes what instance types cost and hold, as the scheduler sees them.
//!
//! Wire types, and what their texts mean. Answers to Karpenter's `pkg/apis/v1alpha1/nodeoverlay.go`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::NodeSelectorRequirement;
use crate::schema;

mod price_change;

pub use price_change::{PriceChange, PriceChangeError};

/// Which instance types are changed, and how.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    category = "karpenter",
    shortname = "overlays",
    status = "NodeOverlayStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer", "jsonPath": ".spec.weight", "priority": 1}"#,
    crates(kube_core = "::kube_core"),
    doc = "NodeOverlay changes what instance types cost and hold, as the scheduler sees them."
)]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings are changed.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub requirements: Vec<NodeSelectorRequirement>,
    /// Change of the price: a signed amount such as -0.05, or a signed share such as +10%.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"
    ))]
    pub price_adjustment: Option<String>,
    /// The price instead, in dollars an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// Resources to add to the instance type, such as those of a device plugin.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::resource_list")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Of overlays that touch the same, the one of greatest weight counts; none counts as zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

impl NodeOverlaySpec {
    /// What the overlay makes of prices; `None` where it says nothing, or what validation finds at fault.
    pub fn price_change(&self) -> Option<PriceChange> {
        match (&self.price, &self.price_adjustment) {
            (Some(price), _) => PriceChange::of_price(price).ok(),
            (None, Some(adjustment)) => PriceChange::of_adjustment(adjustment).ok(),
            (None, None) => None,
        }
    }
}

/// Whether the overlay is in force.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeOverlayStatus {
    /// Whether the overlay is valid and without conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
