//! Workloads and the smaller kinds: defaults and the rules that matter.

use serde_json::{Value, json};

use super::super::kinds::Kind;
use super::super::selectors::LabelSelector;
use super::super::status::FieldError;
use super::pod_template::{self, default_to};

/// Path of the pod template in a kind that has one.
fn template_path(kind: &Kind) -> Option<&'static str> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => Some("/spec/template"),
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template"),
        ("", "PodTemplate") => Some("/template"),
        _ => None,
    }
}

/// Defaults of the kind.
pub(super) fn set_defaults(kind: &Kind, object: &mut Value) {
    if let Some(template) = template_path(kind).and_then(|path| object.pointer_mut(path)) {
        pod_template::set_defaults(&mut template["spec"]);
    }
    if object["spec"].is_null() && kind.kind != "Service" {
        return;
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => deployment_defaults(&mut object["spec"]),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => {
            default_to(&mut object["spec"], "replicas", 1);
        }
        ("apps", "StatefulSet") => stateful_set_defaults(&mut object["spec"]),
        ("apps", "DaemonSet") => {
            let spec = &mut object["spec"];
            default_to(spec, "revisionHistoryLimit", 10);
            default_to(spec, "updateStrategy", json!({"type": "RollingUpdate"}));
            if spec["updateStrategy"]["type"].as_str() == Some("RollingUpdate") {
                let rolling = &mut spec["updateStrategy"]["rollingUpdate"];
                default_to(rolling, "maxUnavailable", 1);
                default_to(rolling, "maxSurge", 0);
            }
        }
        ("batch", "Job") => job_defaults(object),
        ("batch", "CronJob") => {
            let spec = &mut object["spec"];
            default_to(spec, "concurrencyPolicy", "Allow");
            default_to(spec, "suspend", false);
            default_to(spec, "successfulJobsHistoryLimit", 3);
            default_to(spec, "failedJobsHistoryLimit", 1);
        }
        ("", "Service") => {
            service_defaults(&mut object["spec"]);
            assign_cluster_ip(object);
        }
        ("", "PersistentVolumeClaim") => {
            default_to(&mut object["spec"], "volumeMode", "Filesystem");
            default_to(object, "status", json!({"phase": "Pending"}));
        }
        ("", "PersistentVolume") => {
            default_to(
                &mut object["spec"],
                "persistentVolumeReclaimPolicy",
                "Retain",
            );
            default_to(&mut object["spec"], "volumeMode", "Filesystem");
            default_to(object, "status", json!({"phase": "Pending"}));
        }
        _ => {}
    }
}

fn deployment_defaults(spec: &mut Value) {
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "progressDeadlineSeconds", 600);
    default_to(spec, "strategy", json!({}));
    default_to(&mut spec["strategy"], "type", "RollingUpdate");
    if spec["strategy"]["type"].as_str() == Some("RollingUpdate") {
        let rolling = &mut spec["strategy"]["rollingUpdate"];
        default_to(rolling, "maxUnavailable", "25%");
        default_to(rolling, "maxSurge", "25%");
    }
}

fn stateful_set_defaults(spec: &mut Value) {
    default_to(spec, "replicas", 1);
    default_to(spec, "revisionHistoryLimit", 10);
    default_to(spec, "podManagementPolicy", "OrderedReady");
    default_to(spec, "updateStrategy", json!({}));
    default_to(&mut spec["updateStrategy"], "type", "RollingUpdate");
    if spec["updateStrategy"]["type"].as_str() == Some("RollingUpdate") {
        default_to(&mut spec["updateStrategy"]["rollingUpdate"], "partition", 0);
    }
    default_to(
        spec,
        "persistentVolumeClaimRetentionPolicy",
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
    );
    for claim in spec["volumeClaimTemplates"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        claim["apiVersion"] = "v1".into();
        claim["kind"] = "PersistentVolumeClaim".into();
        default_to(&mut claim["spec"], "volumeMode", "Filesystem");
        claim["status"] = json!({"phase": "Pending"});
    }
}

fn job_defaults(job: &mut Value) {
    let spec = &mut job["spec"];
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        spec["completions"] = 1.into();
    }
    default_to(spec, "parallelism", 1);
    default_to(spec, "backoffLimit", 6);
    default_to(spec, "completionMode", "NonIndexed");
    default_to(spec, "suspend", false);
    default_to(spec, "manualSelector", false);
    default_to(spec, "podReplacementPolicy", "TerminatingOrFailed");
}

/// A job's selector is made from its UID, which it has once it is stored.
pub(crate) fn set_job_selector(job: &mut Value) {
    if job["kind"].as_str() != Some("Job") || !job["spec"]["selector"].is_null() {
        return;
    }
    let (uid, name) = (
        job["metadata"]["uid"].clone(),
        job["metadata"]["name"].clone(),
    );
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.clone();
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("job-name", &name),
    ] {
        default_to(labels, key, value.clone());
    }
}

fn service_defaults(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default_to(spec, "type", "ClusterIP");
    default_to(spec, "sessionAffinity", "None");
    if spec["type"].as_str() != Some("ExternalName") {
        default_to(spec, "internalTrafficPolicy", "Cluster");
        default_to(spec, "ipFamilies", json!(["IPv4"]));
        default_to(spec, "ipFamilyPolicy", "SingleStack");
    }
    for port in spec["ports"].as_array_mut().into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        if port["targetPort"].is_null() {
            port["targetPort"] = port["port"].clone();
        }
    }
}

/// Gives a service an address of its own, told by its name; nothing routes it.
fn assign_cluster_ip(service: &mut Value) {
    let metadata = &service["metadata"];
    let name = format!("{}/{}", metadata["namespace"], metadata["name"]);
    let spec = &mut service["spec"];
    if spec["type"].as_str() == Some("ExternalName") || !spec.is_object() {
        return;
    }
    if spec["clusterIP"].as_str().is_none_or(str::is_empty) {
        let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let [_, a, b, c] = hash.to_be_bytes();
        spec["clusterIP"] = format!("10.{}.{b}.{}", 96 + a % 16, c.max(1)).into();
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
}

/// Rules of the kind.
pub(super) fn validate(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    for field in [
        "replicas",
        "parallelism",
        "completions",
        "backoffLimit",
        "minReadySeconds",
    ] {
        if spec[field].as_f64().is_some_and(|n| n < 0.0) && template_path(kind).is_some() {
            let problem = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(
                format!("spec.{field}"),
                &spec[field],
                problem,
            ));
        }
    }
    if let Some(path) = template_path(kind) {
        let dotted = path.trim_start_matches('/').replace('/', ".");
        match object.pointer(path) {
            Some(template) => {
                errors.extend(pod_template::validate(
                    &template["spec"],
                    &format!("{dotted}.spec"),
                ));
            }
            None => errors.push(FieldError::required(dotted, "")),
        }
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            validate_selector(spec, &mut errors);
            let policy = &spec["template"]["spec"]["restartPolicy"];
            if policy.as_str().is_some_and(|p| p != "Always") {
                let allowed = ["Always".to_owned()];
                let field = "spec.template.spec.restartPolicy";
                errors.push(FieldError::not_supported(field, policy, &allowed));
            }
        }
        ("batch", "Job") => {
            let policy = &spec["template"]["spec"]["restartPolicy"];
            if policy.as_str() == Some("Always") {
                let allowed = ["OnFailure".to_owned(), "Never".to_owned()];
                let field = "spec.template.spec.restartPolicy";
                errors.push(FieldError::not_supported(field, policy, &allowed));
            }
        }
        ("policy", "PodDisruptionBudget")
            if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() =>
        {
            errors.push(FieldError::invalid(
                "spec",
                spec,
                "minAvailable and maxUnavailable cannot be both set",
            ));
        }
        ("scheduling.k8s.io", "PriorityClass") if !object["value"].is_number() => {
            errors.push(FieldError::required("value", ""));
        }
        ("", "ConfigMap") => validate_data_keys(object, &mut errors),
        ("", "Node") => validate_taints(spec, &mut errors),
        _ => {}
    }
    errors
}

fn validate_data_keys(object: &Value, errors: &mut Vec<FieldError>) {
    for field in ["data", "binaryData"] {
        for (key, value) in object[field].as_object().into_iter().flatten() {
            let is_good = !key.is_empty()
                && key.len() <= 253
                && key
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
            if !is_good {
                errors.push(FieldError::invalid(
                    format!("{field}[{key}]"),
                    &key.as_str().into(),
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                     (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation \
                     is '[-._a-zA-Z0-9]+')",
                ));
            }
            if !value.is_string() {
                errors.push(FieldError::invalid(
                    format!("{field}[{key}]"),
                    value,
                    "must be a string",
                ));
            }
        }
    }
}

fn validate_taints(spec: &Value, errors: &mut Vec<FieldError>) {
    for (at, taint) in spec["taints"].as_array().into_iter().flatten().enumerate() {
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if taint["effect"]
            .as_str()
            .is_none_or(|effect| !effects.contains(&effect))
        {
            let allowed = effects.map(str::to_owned);
            let field = format!("spec.taints[{at}].effect");
            errors.push(FieldError::not_supported(field, &taint["effect"], &allowed));
        }
    }
}

fn validate_selector(spec: &Value, errors: &mut Vec<FieldError>) {
    let selector = &spec["selector"];
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    }
    let parsed = LabelSelector::from_object(selector);
    if parsed.is_empty() {
        let problem = "empty selector is invalid for deployment";
        errors.push(FieldError::invalid("spec.selector", selector, problem));
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if !parsed.matches_labels(Some(labels)) {
        errors.push(FieldError {
            reason: "FieldValueInvalid",
            field: "spec.template.metadata.labels".to_owned(),
            message: format!(
                "Invalid value: {labels}: `selector` does not match template `labels`"
            ),
        });
    }
}

/// What may not change in the kind.
pub(super) fn validate_update(kind: &Kind, old: &Value, new: &Value) -> Vec<FieldError> {
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
