//! A pod as the world's controllers see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_server::NamespacedName;
use apis::names::DEFAULT_SCHEDULER;
use jiff::Timestamp;
use serde_json::Value;

use super::object_meta::{ControllerRef, controller_of, deletion_time, time};
use super::shape::{SchedulingShape, SchedulingShapes, strings};

/// Phases of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SimulatedPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl SimulatedPhase {
    /// Whether the pod holds its resources.
    pub(crate) fn is_active(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }
}

/// A pod.
#[derive(Debug)]
pub(crate) struct PodRecord {
    pub(crate) key: NamespacedName,
    pub(crate) uid: String,
    pub(crate) owner: Option<ControllerRef>,
    pub(crate) shape: Arc<SchedulingShape>,
    pub(crate) node: Option<String>,
    /// Where somebody would have it, before it is bound.
    pub(crate) nominated: Option<String>,
    /// Where the scheduler has bound it, before the watch tells so.
    pub(crate) assumed: Option<String>,
    pub(crate) phase: SimulatedPhase,
    /// Since when it is ready, if it is.
    pub(crate) ready_since: Option<Timestamp>,
    pub(crate) gated: bool,
    /// PodScheduled=False was written.
    pub(crate) reported_unschedulable: bool,
    pub(crate) deletion: Option<Timestamp>,
    pub(crate) created_at: Timestamp,
    pub(crate) host_network: bool,
    /// No scheduler but the default one is asked for.
    is_ours: bool,
    annotations: BTreeMap<String, String>,
}

impl PodRecord {
    pub(crate) fn parse(object: &Value, old: Option<&Self>, shapes: &mut SchedulingShapes) -> Self {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let gated = spec["schedulingGates"]
            .as_array()
            .is_some_and(|gates| !gates.is_empty());
        let labels_kept = |old: &&Self| is_same(&old.shape.labels, &metadata["labels"]);
        // A pod's spec does not change in what the shape holds, but while it is gated.
        let known = old
            .filter(|old| old.uid == uid && !old.gated)
            .filter(labels_kept);
        let condition = |name: &str| {
            let conditions = status["conditions"].as_array();
            conditions.into_iter().flatten().find(|c| c["type"] == name)
        };
        let named = |value: &Value| {
            let name = value.as_str().filter(|name| !name.is_empty());
            name.map(ToOwned::to_owned)
        };
        Self {
            shape: known.map_or_else(|| shapes.shape(object), |old| Arc::clone(&old.shape)),
            owner: known.map_or_else(|| controller_of(object), |old| old.owner.clone()),
            key: NamespacedName::of(object),
            assumed: old
                .filter(|old| old.uid == uid)
                .and_then(|old| old.assumed.clone()),
            node: named(&spec["nodeName"]),
            nominated: named(&status["nominatedNodeName"]),
            phase: match status["phase"].as_str() {
                Some("Running") => SimulatedPhase::Running,
                Some("Succeeded") => SimulatedPhase::Succeeded,
                Some("Failed") => SimulatedPhase::Failed,
                _ => SimulatedPhase::Pending,
            },
            ready_since: condition("Ready")
                .filter(|it| it["status"] == "True")
                .map(|it| time(&it["lastTransitionTime"]).unwrap_or_default()),
            reported_unschedulable: condition("PodScheduled")
                .is_some_and(|it| it["status"] == "False"),
            deletion: deletion_time(object),
            created_at: time(&metadata["creationTimestamp"]).unwrap_or_default(),
            uid,
            gated,
            host_network: spec["hostNetwork"] == true,
            is_ours: matches!(
                spec["schedulerName"].as_str(),
                None | Some("" | DEFAULT_SCHEDULER)
            ),
            annotations: strings(&metadata["annotations"]),
        }
    }

    /// Its node, told or assumed.
    pub(crate) fn place(&self) -> Option<&str> {
        self.node.as_deref().or(self.assumed.as_deref())
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.deletion.is_some()
    }

    /// Counts towards its controller's replicas, and for rules about other pods.
    pub(crate) fn is_live(&self) -> bool {
        self.phase.is_active() && !self.is_deleting()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready_since.is_some()
    }

    pub(crate) fn waits_for_scheduler(&self) -> bool {
        self.place().is_none()
            && self.phase == SimulatedPhase::Pending
            && !self.gated
            && !self.is_deleting()
            && self.is_ours
    }

    /// An annotation of the pod.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// A label of the pod.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.shape.labels.get(name).map(String::as_str)
    }
}

/// Whether the map in the object holds exactly these texts.
fn is_same(known: &BTreeMap<String, String>, map: &Value) -> bool {
    let map = map.as_object();
    map.map_or(0, serde_json::Map::len) == known.len()
        && map
            .into_iter()
            .flatten()
            .all(|(key, value)| known.get(key).map(String::as_str) == value.as_str())
}
