//! The rules of new workloads and of the smaller kinds.

use crate::builtin::pod_template::{self};
use crate::builtin::workload::template::template_path;
use crate::selectors::ParsedLabelSelector;
use crate::served::kinds::ServedKind;
use crate::status::FieldError;
use serde_json::Value;

/// Rules of the kind.
pub(in crate::builtin) fn validate(kind: &ServedKind, object: &Value) -> Vec<FieldError> {
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
    let parsed = ParsedLabelSelector::from_object(selector);
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
