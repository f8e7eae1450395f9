//! Where a workload has its pod template.

use crate::served::kinds::ServedKind;

/// Path of the pod template in a kind that has one.
pub(super) fn template_path(kind: &ServedKind) -> Option<&'static str> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => Some("/spec/template"),
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template"),
        ("", "PodTemplate") => Some("/template"),
        _ => None,
    }
}
