//! Pod specs, in pods and in the templates of workloads: defaults and the rules that matter.

mod choice;
mod containers;
pub(super) mod defaults;
mod placement;

use self::choice::validate_choice;
use self::containers::validate_container;
use self::placement::{validate_affinity, validate_spread, validate_tolerations};
use serde_json::Value;

use super::metadata::validate_labels;
use crate::status::FieldError;

/// Rules of a pod spec under `path`.
pub(super) fn validate(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for list in ["initContainers", "containers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{list}[{at}]");
            validate_container(container, &path, &mut errors);
            let name = container["name"].as_str().unwrap_or_default();
            if !name.is_empty() && names.contains(&name) {
                errors.push(FieldError::duplicate(
                    format!("{path}.name"),
                    &container["name"],
                ));
            }
            names.push(name);
        }
    }
    validate_choice(
        spec,
        "restartPolicy",
        &["Always", "OnFailure", "Never"],
        path,
        &mut errors,
    );
    let dns = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    validate_choice(spec, "dnsPolicy", &dns, path, &mut errors);
    for at in ["terminationGracePeriodSeconds", "activeDeadlineSeconds"] {
        if spec[at].as_i64().is_some_and(|seconds| seconds < 0) {
            let problem = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(
                format!("{path}.{at}"),
                &spec[at],
                problem,
            ));
        }
    }
    errors.extend(validate_labels(
        &spec["nodeSelector"],
        &format!("{path}.nodeSelector"),
    ));
    validate_tolerations(spec, path, &mut errors);
    validate_volumes(spec, path, &mut errors);
    validate_spread(spec, path, &mut errors);
    validate_affinity(&spec["affinity"], &format!("{path}.affinity"), &mut errors);
    errors
}

fn validate_volumes(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let names: Vec<&str> = spec["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    for list in ["initContainers", "containers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let mounts = container["volumeMounts"].as_array().into_iter().flatten();
            for (mount_at, mount) in mounts.enumerate() {
                if mount["name"]
                    .as_str()
                    .is_none_or(|name| !names.contains(&name))
                {
                    let name = mount["name"].as_str().unwrap_or_default();
                    errors.push(FieldError {
                        reason: "FieldValueNotFound",
                        field: format!("{path}.{list}[{at}].volumeMounts[{mount_at}].name"),
                        message: format!("Not found: {name:?}"),
                    });
                }
            }
        }
    }
}
