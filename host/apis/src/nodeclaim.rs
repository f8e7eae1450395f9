//! NodeClaim: one node that is to be, is, or is about to go.
//!
//! Wire types, and what they say of themselves; what is to be done about it is nobody's business here. Answers to
//! Karpenter's `pkg/apis/v1/nodeclaim.go` and `nodeclaim_status.go`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_core::ResourceExt;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{GoDuration, NillableDuration};
use crate::labels;
use crate::nodepool::default_expire_after;
use crate::provider_id::ProviderId;
use crate::requirement::{NodeClassReference, NodeSelectorRequirementWithMinValues};
use crate::schema;

/// What a node must be. Never changes once created.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    category = "karpenter",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    derive = "Default",
    printcolumn = r#"{"name": "Type", "type": "string", "jsonPath": ".metadata.labels.node\\.kubernetes\\.io/instance-type"}"#,
    printcolumn = r#"{"name": "Capacity", "type": "string", "jsonPath": ".metadata.labels.karpenter\\.sh/capacity-type"}"#,
    printcolumn = r#"{"name": "Zone", "type": "string", "jsonPath": ".metadata.labels.topology\\.kubernetes\\.io/zone"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.nodeName"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "ImageID", "type": "string", "jsonPath": ".status.imageID", "priority": 1}"#,
    printcolumn = r#"{"name": "ID", "type": "string", "jsonPath": ".status.providerID", "priority": 1}"#,
    printcolumn = r#"{"name": "NodePool", "type": "string", "jsonPath": ".metadata.labels.karpenter\\.sh/nodepool", "priority": 1}"#,
    printcolumn = r#"{"name": "NodeClass", "type": "string", "jsonPath": ".spec.nodeClassRef.name", "priority": 1}"#,
    printcolumn = r#"{"name": "Drifted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Drifted\")].status", "priority": 1}"#,
    crates(kube_core = "::kube_core"),
    doc = "NodeClaim stands for one node: asked for, running, or about to go."
)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
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
    /// What must fit on the node.
    #[serde(default, skip_serializing_if = "ResourceRequirements::is_empty")]
    pub resources: ResourceRequirements,
    /// The object that tells how the cloud is to make the node.
    pub node_class_ref: NodeClassReference,
    /// How long the deleted node may drain before it is taken away by force; none means as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = schema::DURATION_PATTERN))]
    pub termination_grace_period: Option<GoDuration>,
    /// How long the node lives; Never means as long as it is needed.
    #[serde(default = "default_expire_after")]
    pub expire_after: NillableDuration,
}

/// What must fit on the node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequirements {
    /// Sum of the pods' requests and the daemons'.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::resource_list")]
    pub requests: BTreeMap<String, Quantity>,
}

impl NodeClaim {
    /// What the cloud calls its instance; none before it is launched.
    pub fn provider_id(&self) -> Option<ProviderId> {
        ProviderId::parse(self.status.as_ref()?.provider_id.as_deref())
    }

    /// Its NodePool; none of a claim that no pool made.
    pub fn pool_name(&self) -> Option<&str> {
        self.label(labels::NODEPOOL)
    }

    /// A label, where it has that.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key).map(String::as_str)
    }

    /// Its instance in words, such as `m7i.large spot us-east-1a`.
    pub fn instance_text(&self) -> String {
        let keys = [
            labels::INSTANCE_TYPE,
            labels::CAPACITY_TYPE,
            labels::TOPOLOGY_ZONE,
        ];
        let words = keys.map(|key| self.label(key).unwrap_or_default());
        words.join(" ").trim().to_owned()
    }

    /// By when the node must be gone, once that is decided.
    pub fn termination_deadline(&self) -> Option<Timestamp> {
        self.annotations()
            .get(labels::NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION)
            .and_then(|text| text.parse().ok())
    }

    /// A copy that says by when the node must be gone.
    #[must_use]
    pub fn with_termination_deadline(&self, deadline: Timestamp) -> Self {
        let mut after = self.clone();
        after.annotations_mut().insert(
            labels::NODECLAIM_TERMINATION_TIMESTAMP_ANNOTATION.to_owned(),
            Self::deadline_text(deadline),
        );
        after
    }

    /// A deadline as the annotation says it: whole seconds of UTC.
    pub fn deadline_text(deadline: Timestamp) -> String {
        deadline.strftime("%FT%TZ").to_string()
    }
}

impl ResourceRequirements {
    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// What is known of the node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// Name of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The cloud's id of the instance, as in the node's spec.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,
    /// Machine image of the instance.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Expected capacity of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::resource_list")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Expected allocatable resources of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::resource_list")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// How far the node has come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::node_claim_conditions")]
    pub conditions: Vec<Condition>,
    /// When a pod was last bound to the node or went away from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<Time>,
}
