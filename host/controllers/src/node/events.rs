//! The events of nodes on their way out, and of the pods that leave them.
//!
//! Answers to `pkg/controllers/node/termination/terminator/events`.

use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::{Resource, ResourceExt};
use scheduling::pod::{Pod, PodKey};

use crate::recorder::{EventType, Notice};

/// Reference to a pod of which we keep no object.
pub(crate) fn pod_reference(key: &PodKey, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

/// Reference to a node of which only the name is at hand.
pub(crate) fn node_reference(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        // Events about nodes carry the name as UID, as kubectl describe looks for it there.
        uid: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

pub(crate) fn evicted(pod: &Pod, reason: &str) -> Notice {
    let regarding = pod_reference(&pod.key, &pod.uid);
    Notice::new(
        regarding,
        EventType::Normal,
        "Evicted",
        format!("Evicted pod: {reason}"),
    )
}

pub(crate) fn force_deleted(pod: &Pod, granted_seconds: u32, deadline: &str) -> Notice {
    let own = pod
        .shape
        .termination_grace_period_seconds
        .unwrap_or_default();
    let message = format!(
        "Deleting the pod to accommodate the terminationTime {deadline} of the node. The pod was granted \
         {granted_seconds} seconds of grace-period of its {own} terminationGracePeriodSeconds. This bypasses the \
         PDB of the pod and the do-not-disrupt annotation."
    );
    Notice::new(
        pod_reference(&pod.key, &pod.uid),
        EventType::Normal,
        "Disrupted",
        message,
    )
}

pub(crate) fn failed_draining(node: &str, why: &str) -> Notice {
    let message = format!("Failed to drain node, {why}");
    Notice::new(
        node_reference(node),
        EventType::Warning,
        "FailedDraining",
        message,
    )
}

pub(crate) fn awaiting_volumes(node: &Node, attachments: &[String]) -> Notice {
    let shown = attachments
        .iter()
        .take(5)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let rest = attachments.len().saturating_sub(5);
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    let message = format!("Awaiting deletion of bound volumeattachments ({shown}{more})");
    let regarding = node_reference(&node.name_any());
    Notice::new(
        regarding,
        EventType::Normal,
        "AwaitingVolumeDetachment",
        message,
    )
}

pub(crate) fn grace_period_expiring(node: &Node, deadline: &str) -> Notice {
    let message = format!("All pods will be deleted by {deadline}");
    let mut regarding = node.object_ref(&());
    regarding.uid = Some(node.name_any());
    Notice::new(
        regarding,
        EventType::Warning,
        "TerminationGracePeriodExpiring",
        message,
    )
}
