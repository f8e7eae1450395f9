//! The events of nodes on their way out, and of the pods that leave them.
//!
//! Answers to `pkg/controllers/node/termination/terminator/events`.

use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::Resource;
use scheduling::pod::Pod;

use crate::recorder::{EventType, Notice};
use crate::references;

pub(crate) fn evicted(pod: &Pod, reason: &str) -> Notice {
    let regarding = references::pod(&pod.key, &pod.uid);
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
        references::pod(&pod.key, &pod.uid),
        EventType::Normal,
        "Disrupted",
        message,
    )
}

pub(crate) fn failed_draining(node: ObjectReference, why: &str) -> Notice {
    let message = format!("Failed to drain node, {why}");
    Notice::new(node, EventType::Warning, "FailedDraining", message)
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
    Notice::new(
        node.object_ref(&()),
        EventType::Normal,
        "AwaitingVolumeDetachment",
        message,
    )
}

pub(crate) fn grace_period_expiring(node: &Node, deadline: &str) -> Notice {
    let message = format!("All pods will be deleted by {deadline}");
    Notice::new(
        node.object_ref(&()),
        EventType::Warning,
        "TerminationGracePeriodExpiring",
        message,
    )
}
