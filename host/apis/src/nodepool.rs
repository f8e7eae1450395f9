//! NodePool: what nodes may be made, within which limits, and how they may be disrupted.
//!
//! Wire types and their defaults only. Answers to Karpenter's `pkg/apis/v1/nodepool.go`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{GoDuration, NillableDuration};
use crate::labels;
use crate::requirement::{NodeClassReference, NodeSelectorRequirementWithMinValues};
use crate::resources::Resources;
use crate::schema;

mod budget;

pub use budget::Budget;

/// The nodes a pool makes, and how it treats them.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    derive = "PartialEq",
    derive = "Default",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.nodes"
    ),
    printcolumn = r#"{"name": "NodeClass", "type": "string", "jsonPath": ".spec.template.spec.nodeClassRef.name"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "string", "jsonPath": ".status.nodes"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Weight", "type": "integer", "jsonPath": ".spec.weight", "priority": 1}"#,
    printcolumn = r#"{"name": "CPU", "type": "string", "jsonPath": ".status.resources.cpu", "priority": 1}"#,
    printcolumn = r#"{"name": "Memory", "type": "string", "jsonPath": ".status.resources.memory", "priority": 1}"#,
    crates(kube_core = "::kube_core"),
    doc = "NodePool says which nodes may be made, within which limits, and how they may be disrupted."
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// From which the pool's NodeClaims are made.
    pub template: NodeClaimTemplate,
    /// How the pool's nodes may be disrupted.
    #[serde(default)]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Disruption,
    /// Most resources the pool's nodes may add up to; the key nodes bounds their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::resource_list")]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// Pools of greater weight are tried first; none counts as zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// Alpha: number of nodes to keep, whatever the pods ask for. Makes the pool static.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// How a pool's nodes may be disrupted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have been without pod events before it may be consolidated; Never turns consolidation off.
    #[serde(default = "default_consolidate_after")]
    pub consolidate_after: NillableDuration,
    /// Which nodes may be consolidated.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many of the pool's nodes may be disrupted at once; the least of the budgets in force counts.
    #[serde(default = "default_budgets")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub budgets: Vec<Budget>,
}

fn default_consolidate_after() -> NillableDuration {
    NillableDuration::of(GoDuration::ZERO)
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget::default()]
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: default_consolidate_after(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: default_budgets(),
        }
    }
}

schema::words! {
    /// Which nodes may be consolidated.
    #[derive(Default)]
    ConsolidationPolicy {
        /// Only nodes without pods that would have to move.
        WhenEmpty = "WhenEmpty",
        /// Also nodes whose pods fit elsewhere at less cost.
        #[default]
        WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized",
        /// As the former, but only where the saving outweighs the disturbance.
        Balanced = "Balanced",
    }
}

schema::words! {
    /// Why a node is disrupted.
    DisruptionReason {
        /// Its pods fit elsewhere at less cost.
        Underutilized = "Underutilized",
        /// It runs no pod that would have to move.
        Empty = "Empty",
        /// It no longer is what its pool or class asks for.
        Drifted = "Drifted",
        /// It is sick and gets repaired.
        Unhealthy = "Unhealthy",
    }
}

/// From which NodeClaims are made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClaimTemplate {
    /// Labels and annotations for claims and nodes.
    #[serde(default, skip_serializing_if = "NodeClaimTemplateMetadata::is_empty")]
    pub metadata: NodeClaimTemplateMetadata,
    /// The claim's spec, save for what the pods add.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations for claims and nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClaimTemplateMetadata {
    /// Labels for claims and nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations for claims and nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "granular"))]
    pub annotations: BTreeMap<String, String>,
}

impl NodeClaimTemplateMetadata {
    fn is_empty(&self) -> bool {
        let Self {
            labels,
            annotations,
        } = self;
        labels.is_empty() && annotations.is_empty()
    }
}

/// The claim's spec, save for what the pods add.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Taints of the node; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub taints: Vec<Taint>,
    /// Taints the node has at first and something else takes away; pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub startup_taints: Vec<Taint>,
    /// What the node's labels must be.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub requirements: Vec<NodeSelectorRequirementWithMinValues>,
    /// The object that tells how the cloud is to make the node.
    pub node_class_ref: NodeClassReference,
    /// How long a deleted node may drain before it is taken away by force; none means as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_PATTERN))]
    pub termination_grace_period: Option<GoDuration>,
    /// How long a node lives; Never means as long as it is needed.
    #[serde(default = "default_expire_after")]
    pub expire_after: NillableDuration,
}

/// Thirty days, spelt as Karpenter's CRD spells it.
pub(crate) fn default_expire_after() -> NillableDuration {
    NillableDuration::hours(720)
}

/// What is known of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Resources of all of the pool's nodes together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::resource_list")]
    pub resources: BTreeMap<String, Quantity>,
    /// Number of the pool's nodes.
    #[serde(default)]
    #[schemars(extend("default" = 0))]
    pub nodes: i64,
    /// Generation of the NodeClass for which registration health was last judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// Whether the pool is valid, ready and healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

impl NodePool {
    /// Whether the pool keeps a fixed number of nodes.
    pub const fn is_static(&self) -> bool {
        self.spec.replicas.is_some()
    }

    /// Number of nodes that a static pool keeps.
    pub fn replicas_wanted(&self) -> u64 {
        u64::try_from(self.spec.replicas.unwrap_or(0)).unwrap_or(0)
    }

    /// Number of nodes that the pool may have; `None` where it has no such limit.
    pub fn nodes_max(&self) -> Option<u64> {
        let limits = Resources::from_list(self.spec.limits.as_ref()?);
        let is_limited = limits.has(labels::RESOURCE_NODES);
        is_limited.then(|| u64::try_from(limits.count(labels::RESOURCE_NODES)).unwrap_or(0))
    }

    /// Order of trial among pools: greater first.
    pub fn weight(&self) -> i32 {
        self.spec.weight.unwrap_or(0)
    }
}
