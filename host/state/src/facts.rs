//! Nodes, NodeClaims and NodeClasses, parsed to what decisions need.
//!
//! The API objects are forgotten: a claim's requirements alone may name hundreds of instance types.

use std::collections::BTreeMap;

use apis::conditions::{self, Conditioned, Status, is_node_ready};
use apis::duration::GoDuration;
use apis::labels;
use apis::resources::Resources;
use apis::{Ec2NodeClass, NodeClaim, ProviderId};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};

/// Facts of a Node that decisions look at.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeFacts {
    pub name: String,
    pub uid: String,
    /// Provider id from `spec.providerID`; none while the Node has none.
    pub provider_id: Option<ProviderId>,
    pub labels: BTreeMap<String, String>,
    /// Annotations of Karpenter's and of this project.
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<v1::Taint>,
    pub capacity: Resources,
    pub allocatable: Resources,
    /// Condition Ready is True.
    pub is_ready: bool,
    /// All conditions, in order of the object; for repair.
    pub conditions: Vec<NodeConditionFacts>,
    /// Carries the termination finalizer.
    pub has_finalizer: bool,
    /// Moment of creation, from `metadata.creationTimestamp`.
    pub created_at: Option<Timestamp>,
    /// Moment of the deletion request, from `metadata.deletionTimestamp`; none while the Node stays.
    pub deleted_at: Option<Timestamp>,
}

/// A condition of a Node. Heartbeats are left out, so that they change nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConditionFacts {
    /// Type of the condition, such as `Ready`.
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// CamelCase reason of the status; empty where none is given.
    pub reason: String,
    /// When the status came about.
    pub since: Option<Timestamp>,
}

/// Facts of a NodeClaim that decisions look at.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimFacts {
    pub name: String,
    pub uid: String,
    /// `status.providerID`, none before launch.
    pub provider_id: Option<ProviderId>,
    /// `status.nodeName`, none before registration.
    pub node_name: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// Annotations of Karpenter's and of this project.
    pub annotations: BTreeMap<String, String>,
    /// Taints of the spec.
    pub taints: Vec<v1::Taint>,
    /// Startup taints of the spec.
    pub startup_taints: Vec<v1::Taint>,
    /// Requests of the spec.
    pub requests: Resources,
    /// Capacity that the node is expected to have, from `status.capacity`.
    pub capacity: Resources,
    /// Allocatable that the node is expected to have, from `status.allocatable`.
    pub allocatable: Resources,
    /// Name of its NodeClass.
    pub node_class: String,
    /// Conditions that decisions look at.
    pub conditions: ClaimConditions,
    /// Why it drifted, such as `NodePoolDrifted`.
    pub drift_reason: Option<String>,
    /// Last time a pod came or went.
    pub last_pod_event_at: Option<Timestamp>,
    /// How long it lives; `None` for ever.
    pub expire_after: Option<GoDuration>,
    /// How long it may drain.
    pub termination_grace_period: Option<GoDuration>,
    /// Moment of creation, from `metadata.creationTimestamp`.
    pub created_at: Option<Timestamp>,
    /// Moment of the deletion request, from `metadata.deletionTimestamp`; none while the claim stays.
    pub deleted_at: Option<Timestamp>,
}

/// Conditions of a claim. A time is that of the transition to True; `None` means not True.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClaimConditions {
    /// Since when the cloud has the instance.
    pub launched_at: Option<Timestamp>,
    /// Since when the node has joined.
    pub registered_at: Option<Timestamp>,
    /// Since when the node takes pods.
    pub initialized_at: Option<Timestamp>,
    /// Since when the node no longer matches its definition.
    pub drifted_at: Option<Timestamp>,
    /// Since when consolidation may look at the node.
    pub consolidatable_at: Option<Timestamp>,
    /// Since when the cloud is taking the instance away.
    pub instance_terminating_at: Option<Timestamp>,
    /// Since when a disruption command has had the claim.
    pub disruption_reason_at: Option<Timestamp>,
    /// Since when an in-place reboot has been running.
    pub rebooting_at: Option<Timestamp>,
    /// When the last reboot ended, well or not.
    pub rebooted_at: Option<Timestamp>,
}

/// Facts of an EC2NodeClass that decisions look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeClassFacts {
    pub name: String,
    /// Condition Ready is True.
    pub is_ready: bool,
    /// Whether it has a deletion timestamp.
    pub is_deleting: bool,
    /// Definition of its nodes as a text: its hash and its images. Another text is another roll-out.
    pub fingerprint: String,
}

impl NodeFacts {
    /// Since when it is ready, where it is and says so.
    pub fn ready_at(&self) -> Option<Timestamp> {
        let mut conditions = self.conditions.iter();
        let ready = conditions.find(|it| {
            it.condition_type == conditions::READY
                && Status::parse(&it.status) == Some(Status::True)
        });
        ready?.since
    }

    /// Reads the API object.
    pub fn parse(object: &v1::Node) -> Self {
        let meta = &object.metadata;
        let spec = object.spec.as_ref();
        let status = object.status.as_ref();
        let list = |it: Option<&BTreeMap<_, _>>| it.map(Resources::from_list).unwrap_or_default();
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            provider_id: ProviderId::of_node(object),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: own_annotations(meta),
            taints: spec.and_then(|it| it.taints.clone()).unwrap_or_default(),
            capacity: list(status.and_then(|it| it.capacity.as_ref())),
            allocatable: list(status.and_then(|it| it.allocatable.as_ref())),
            is_ready: is_node_ready(object),
            conditions: status
                .and_then(|it| it.conditions.as_ref())
                .map(|all| all.iter().map(NodeConditionFacts::parse).collect())
                .unwrap_or_default(),
            has_finalizer: meta
                .finalizers
                .iter()
                .flatten()
                .any(|it| it == labels::TERMINATION_FINALIZER),
            created_at: meta.creation_timestamp.as_ref().map(|it| it.0),
            deleted_at: meta.deletion_timestamp.as_ref().map(|it| it.0),
        }
    }

    /// Says of itself that a pool made it.
    pub(crate) fn claims_a_pool(&self) -> bool {
        self.labels
            .get(labels::NODEPOOL)
            .is_some_and(|it| !it.is_empty())
    }
}

impl NodeConditionFacts {
    fn parse(object: &v1::NodeCondition) -> Self {
        Self {
            condition_type: object.type_.clone(),
            status: object.status.clone(),
            reason: object.reason.clone().unwrap_or_default(),
            since: object.last_transition_time.as_ref().map(|it| it.0),
        }
    }
}

impl ClaimFacts {
    /// Reads the API object.
    pub fn parse(object: &NodeClaim) -> Self {
        let meta = &object.metadata;
        let spec = &object.spec;
        let status = object.status.clone().unwrap_or_default();
        let class = &spec.node_class_ref;
        Self {
            name: meta.name.clone().unwrap_or_default(),
            uid: meta.uid.clone().unwrap_or_default(),
            provider_id: object.provider_id(),
            node_name: status.node_name.filter(|it| !it.is_empty()),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: own_annotations(meta),
            taints: spec.taints.clone(),
            startup_taints: spec.startup_taints.clone(),
            requests: Resources::from_list(&spec.resources.requests),
            capacity: Resources::from_list(&status.capacity),
            allocatable: Resources::from_list(&status.allocatable),
            node_class: class.name.clone(),
            conditions: ClaimConditions::parse(&status.conditions),
            drift_reason: drift_reason(&status.conditions),
            last_pod_event_at: status.last_pod_event_time.map(|it| it.0),
            expire_after: spec.expire_after.duration(),
            termination_grace_period: spec.termination_grace_period,
            created_at: meta.creation_timestamp.as_ref().map(|it| it.0),
            deleted_at: meta.deletion_timestamp.as_ref().map(|it| it.0),
        }
    }

    /// The NodePool it belongs to, by label.
    pub fn node_pool(&self) -> Option<&str> {
        self.labels.get(labels::NODEPOOL).map(String::as_str)
    }
}

fn drift_reason(conditions: &[Condition]) -> Option<String> {
    let drifted = conditions::with_status(conditions, conditions::DRIFTED, Status::True);
    drifted.map(|it| it.reason.clone())
}

impl ClaimConditions {
    fn parse(conditions: &[Condition]) -> Self {
        let since = |condition_type: &str, status: Status| {
            let found = conditions::with_status(conditions, condition_type, status);
            found.map(|it| it.last_transition_time.0)
        };
        let true_since = |condition_type: &str| since(condition_type, Status::True);
        Self {
            launched_at: true_since(conditions::LAUNCHED),
            registered_at: true_since(conditions::REGISTERED),
            initialized_at: true_since(conditions::INITIALIZED),
            drifted_at: true_since(conditions::DRIFTED),
            consolidatable_at: true_since(conditions::CONSOLIDATABLE),
            instance_terminating_at: true_since(conditions::INSTANCE_TERMINATING),
            disruption_reason_at: true_since(conditions::DISRUPTION_REASON),
            rebooting_at: true_since(conditions::REBOOTING),
            rebooted_at: since(conditions::REBOOTING, Status::False),
        }
    }
}

impl NodeClassFacts {
    /// Reads the API object.
    pub fn parse(object: &Ec2NodeClass) -> Self {
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            is_ready: object.is_ready(),
            is_deleting: object.metadata.deletion_timestamp.is_some(),
            fingerprint: fingerprint(object),
        }
    }
}

fn fingerprint(class: &Ec2NodeClass) -> String {
    let annotations = class.metadata.annotations.as_ref();
    let hash = annotations.and_then(|it| it.get(labels::EC2_NODE_CLASS_HASH_ANNOTATION));
    let images = class.status.iter().flat_map(|it| &it.amis);
    let mut parts: Vec<&str> = images.map(|it| it.id.as_str()).collect();
    parts.sort_unstable();
    parts.insert(0, hash.map_or("", String::as_str));
    parts.join(" ")
}

/// Annotations of Karpenter's and of this project, all that facts keep.
pub fn own_annotations(meta: &ObjectMeta) -> BTreeMap<String, String> {
    meta.annotations
        .iter()
        .flatten()
        .filter(|(key, _)| labels::is_ours(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
