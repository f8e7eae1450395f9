//! The fields that an update may not change.

use crate::served::kinds::ServedKind;
use crate::status::FieldError;
use serde_json::Value;

/// What may not change in the kind.
pub(in crate::builtin) fn validate_update(
    kind: &ServedKind,
    old: &Value,
    new: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut immutable = |path: &str| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (before, after) = (old.pointer(&pointer), new.pointer(&pointer));
        if before != after {
            let shown = after.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(path, &shown, "field is immutable"));
        }
    };
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => immutable("spec.selector"),
        ("batch", "Job") => {
            immutable("spec.selector");
            immutable("spec.completionMode");
            // Suspended jobs may have their template's scheduling changed; the rest of it is fixed.
            if old["spec"]["suspend"].as_bool() != Some(true) {
                immutable("spec.template");
            }
        }
        ("apps", "StatefulSet") => {
            for field in [
                "serviceName",
                "selector",
                "podManagementPolicy",
                "volumeClaimTemplates",
            ] {
                if old["spec"][field] != new["spec"][field] {
                    errors.push(FieldError::forbidden(
                        "spec",
                        "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                         'template', 'updateStrategy', 'revisionHistoryLimit', \
                         'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
                    ));
                    break;
                }
            }
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            immutable("value");
            immutable("preemptionPolicy");
        }
        ("storage.k8s.io", "StorageClass") => {
            immutable("provisioner");
            immutable("parameters");
            immutable("volumeBindingMode");
        }
        ("", "Secret" | "ConfigMap") if old["immutable"].as_bool() == Some(true) => {
            for field in ["data", "binaryData", "immutable"] {
                if old[field] != new[field] {
                    let problem = "field is immutable when `immutable` is set";
                    errors.push(FieldError::forbidden(field, problem));
                }
            }
        }
        _ => {}
    }
    errors
}
