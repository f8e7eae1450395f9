//! Pods as the cluster admitted them: sidecars, defaults and tolerations that a template does not have.
//!
//! Webhooks and limit ranges change pods after their controller wrote them. The shadow has neither, so its controllers
//! write pods as one of the cluster's pods of the same controller is.

use serde_json::{Value, json};

use crate::kinds::ReadKind;

/// What webhooks and defaults may have changed, and what belongs to no one pod.
const FIELDS: [&str; 8] = [
    "containers",
    "initContainers",
    "tolerations",
    "nodeSelector",
    "priority",
    "priorityClassName",
    "overhead",
    "hostNetwork",
];

/// A workload whose template asks for what its pod asks for.
pub(crate) fn with_admitted(kind: ReadKind, workload: &mut Value, pod: &Value) {
    let template = &mut workload["spec"]["template"];
    for field in FIELDS {
        if !pod["spec"][field].is_null() {
            template["spec"][field] = pod["spec"][field].clone();
        }
    }
    // A daemon is tied to its node.
    if kind != ReadKind::DaemonSets && !pod["spec"]["affinity"].is_null() {
        template["spec"]["affinity"] = pod["spec"]["affinity"].clone();
    }
    // The tolerations that every pod of a DaemonSet is given are given again.
    if kind == ReadKind::DaemonSets
        && let Some(tolerations) = template["spec"]["tolerations"].as_array_mut()
    {
        tolerations.retain(|it| {
            let key = it["key"].as_str().unwrap_or_default();
            !(key.starts_with("node.kubernetes.io/") && it["operator"] == json!("Exists"))
        });
    }
}
