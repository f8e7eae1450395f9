//! Memory of an object: its conditions, its finalizers, and the labels by which series are told apart.
//!
//! It tells nobody.

use std::collections::BTreeMap;

use apis::conditions::Conditioned;
use apis::{ObjectKey, labels};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use state::Snapshot;
use state::cluster::Change;

use crate::shell::journal::references;

/// A kind whose conditions are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StatusKind {
    NodeClaim,
    NodePool,
    NodeClass,
    Node,
    CapacityBuffer,
}

impl StatusKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::NodeClaim,
        Self::NodePool,
        Self::NodeClass,
        Self::Node,
        Self::CapacityBuffer,
    ];

    /// Group and kind.
    pub(crate) const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::NodeClaim => (labels::GROUP, "NodeClaim"),
            Self::NodePool => (labels::GROUP, "NodePool"),
            Self::NodeClass => (labels::AWS_GROUP, "EC2NodeClass"),
            Self::Node => ("", "Node"),
            Self::CapacityBuffer => ("autoscaling.x-k8s.io", "CapacityBuffer"),
        }
    }

    /// As metrics call it.
    pub(crate) fn in_metrics(self) -> &'static str {
        match self {
            Self::NodeClaim => "nodeclaim",
            Self::NodePool => "nodepool",
            Self::NodeClass => "ec2nodeclass",
            Self::Node => "node",
            Self::CapacityBuffer => "capacitybuffer",
        }
    }

    /// Whether the series without the kind in their name are written, too; Karpenter has given them up for Nodes.
    pub(crate) fn has_deprecated(self) -> bool {
        self != Self::Node
    }

    /// Labels of the object that its series carry: what metrics call them, and their keys.
    pub(crate) fn extra_labels(self) -> &'static [(&'static str, &'static str)] {
        const OF_CLAIMS: [(&str, &str); 2] = [
            ("karpenter_k8s_aws_ec2nodeclass", labels::EC2_NODE_CLASS),
            ("karpenter_sh_nodepool", labels::NODEPOOL),
        ];
        const OF_NODES: [(&str, &str); 3] = [
            OF_CLAIMS[0],
            OF_CLAIMS[1],
            ("karpenter_sh_initialized", labels::INITIALIZED),
        ];
        match self {
            Self::NodeClaim => &OF_CLAIMS,
            Self::Node => &OF_NODES,
            Self::NodePool | Self::NodeClass | Self::CapacityBuffer => &[],
        }
    }
}

/// A condition as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionSeen {
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) since: Option<Timestamp>,
}

/// An object as it was seen last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusSeen {
    pub(crate) kind: StatusKind,
    pub(crate) uid: String,
    pub(crate) regarding: ObjectReference,
    /// Conditions by their type.
    pub(crate) conditions: BTreeMap<String, ConditionSeen>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) deleted_at: Option<Timestamp>,
    /// In the order of [`StatusKind::extra_labels`].
    pub(crate) extra: Vec<String>,
}

/// What a change leaves of an object whose conditions are told.
pub(super) struct StatusNow {
    pub(super) kind: StatusKind,
    pub(super) key: ObjectKey,
    /// None of one that is gone.
    pub(super) seen: Option<StatusSeen>,
}

impl StatusNow {
    /// None where no conditions are told of what changed.
    pub(super) fn after(change: &Change, snapshot: &Snapshot) -> Option<Self> {
        match change {
            Change::Node { name, after, .. } => Some(Self {
                kind: StatusKind::Node,
                key: ObjectKey::cluster(name),
                seen: after.and_then(|_| StatusSeen::of_node(name, snapshot)),
            }),
            Change::NodeClaim { name, after, .. } => {
                let key = ObjectKey::cluster(name);
                Some(Self::of_object(
                    StatusKind::NodeClaim,
                    key,
                    after.as_deref(),
                ))
            }
            Change::NodePool(versions) => {
                let key = versions.key.clone();
                Some(Self::of_object(StatusKind::NodePool, key, versions.after()))
            }
            Change::NodeClass(versions) => {
                let key = versions.key.clone();
                Some(Self::of_object(
                    StatusKind::NodeClass,
                    key,
                    versions.after(),
                ))
            }
            Change::CapacityBuffer(versions) => {
                let kind = StatusKind::CapacityBuffer;
                let seen = versions.after().map(|buffer| {
                    let conditions = buffer.status.iter().flat_map(|it| &it.conditions);
                    StatusSeen::of_meta(kind, buffer, conditions)
                });
                let key = versions.key.clone();
                Some(Self { kind, key, seen })
            }
            Change::Pod { .. }
            | Change::PodGone { .. }
            | Change::PodDisplaced(_)
            | Change::NodeOverlay(_)
            | Change::Workload(_) => None,
        }
    }

    fn of_object<K: Conditioned>(kind: StatusKind, key: ObjectKey, object: Option<&K>) -> Self {
        let seen = object.map(|it| StatusSeen::of_meta(kind, it, it.conditions()));
        Self { kind, key, seen }
    }
}

impl StatusSeen {
    fn of_meta<'a, K: kube::Resource<DynamicType = ()>>(
        kind: StatusKind,
        object: &K,
        conditions: impl IntoIterator<Item = &'a Condition>,
    ) -> Self {
        let meta = object.meta();
        let label = |key: &str| meta.labels.as_ref().and_then(|it| it.get(key)).cloned();
        let extra = kind.extra_labels().iter();
        let conditions = conditions.into_iter();
        let conditions = conditions.map(|it| (it.type_.clone(), ConditionSeen::of(it)));
        Self {
            kind,
            uid: meta.uid.clone().unwrap_or_default(),
            regarding: object.object_ref(&()),
            conditions: conditions.collect(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            deleted_at: meta.deletion_timestamp.as_ref().map(|it| it.0),
            extra: extra.map(|it| label(it.1).unwrap_or_default()).collect(),
        }
    }

    /// Of Nodes the model keeps the facts alone.
    fn of_node(name: &str, snapshot: &Snapshot) -> Option<Self> {
        let facts = snapshot.node(name)?.node()?;
        let conditions = facts.conditions.iter().map(|it| {
            let seen = ConditionSeen {
                status: it.status.clone(),
                reason: it.reason.clone(),
                message: String::new(),
                since: it.since,
            };
            (it.condition_type.clone(), seen)
        });
        let finalizer = labels::TERMINATION_FINALIZER.to_owned();
        let extra = StatusKind::Node.extra_labels().iter();
        let label = |key: &str| facts.labels.get(key).cloned().unwrap_or_default();
        Some(Self {
            kind: StatusKind::Node,
            uid: facts.uid.clone(),
            regarding: references::node(snapshot, name),
            conditions: conditions.collect(),
            finalizers: facts
                .has_finalizer
                .then_some(finalizer)
                .into_iter()
                .collect(),
            deleted_at: facts.deleted_at,
            extra: extra.map(|it| label(it.1)).collect(),
        })
    }

    /// Without what is told once and never asked for again.
    pub(super) fn without_messages(mut self) -> Self {
        for condition in self.conditions.values_mut() {
            condition.message = String::new();
        }
        self
    }
}

impl ConditionSeen {
    fn of(condition: &Condition) -> Self {
        Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: Some(condition.last_transition_time.0),
        }
    }
}
