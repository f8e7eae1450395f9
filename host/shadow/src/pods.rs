//! Pods of the cluster as the shadow starts them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object::{controller_of, is_deleting};

/// The kind of a pod's controller.
pub(crate) fn owner_kind(pod: &Value) -> Option<&str> {
    controller_of(pod)?["kind"].as_str()
}

/// The UID of a pod's controller.
pub(crate) fn owner_uid(pod: &Value) -> Option<&str> {
    controller_of(pod)?["uid"].as_str()
}

/// Whether its containers ended for good.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

/// Whether it belongs to its node: a daemon, or a pod of the kubelet's own.
pub(crate) fn is_of_its_node(pod: &Value) -> bool {
    matches!(owner_kind(pod), Some("DaemonSet" | "Node"))
}

/// The pod as the shadow starts it: where it is, if its node is in the shadow, else waiting for another. Nothing of
/// pods that are on their way out, and of those that ended, if no Job counts them.
pub(crate) fn at_start(pod: Value, nodes: &BTreeSet<String>) -> Option<Value> {
    if is_deleting(&pod) || (is_finished(&pod) && owner_kind(&pod) != Some("Job")) {
        return None;
    }
    let node = pod["spec"]["nodeName"].as_str().filter(|it| !it.is_empty());
    if is_finished(&pod) || node.is_some_and(|it| nodes.contains(it)) {
        return Some(pod);
    }
    let nominated = pod["status"]["nominatedNodeName"].as_str();
    if node.is_none() && nominated.is_none_or(|it| nodes.contains(it)) {
        return Some(pod);
    }
    if is_of_its_node(&pod) {
        return None;
    }
    Some(waiting(pod))
}

/// The pod as its controller made it, for the shadow's scheduler.
pub(crate) fn waiting(mut pod: Value) -> Value {
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("nodeName");
    }
    pod["status"] = json!({"phase": "Pending"});
    pod
}
