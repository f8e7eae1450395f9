//! The rules of containers: names, images, ports, resources.

use crate::builtin::metadata::is_label_name;
use crate::builtin::pod_template::choice::validate_choice;
use crate::quantity;
use crate::status::FieldError;
use serde_json::Value;

pub(super) fn validate_container(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match container["name"].as_str() {
        None | Some("") => errors.push(FieldError::required(format!("{path}.name"), "")),
        Some(name) if !is_label_name(name) => errors.push(FieldError::invalid(
            format!("{path}.name"),
            &container["name"],
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
             and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
             regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        )),
        Some(_) => {}
    }
    if container["image"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    validate_choice(container, "imagePullPolicy", &policies, path, errors);
    for (at, port) in container["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for field in ["containerPort", "hostPort"] {
            if port[field]
                .as_i64()
                .is_some_and(|n| !(1..=65535).contains(&n))
            {
                let path = format!("{path}.ports[{at}].{field}");
                let problem = "must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(path, &port[field], problem));
            }
        }
    }
    validate_resources(
        &container["resources"],
        &format!("{path}.resources"),
        errors,
    );
}

fn validate_resources(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for list in ["limits", "requests"] {
        for (resource, value) in resources[list].as_object().into_iter().flatten() {
            let field = format!("{path}.{list}[{resource}]");
            match quantity::parse(value) {
                None => errors.push(FieldError::invalid(field, value, quantity::PROBLEM)),
                Some(amount) if amount < 0.0 => errors.push(FieldError::invalid(
                    field,
                    value,
                    "must be greater than or equal to 0",
                )),
                Some(_) => {}
            }
        }
    }
    for (resource, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][resource];
        if let (Some(asked), Some(most)) = (quantity::parse(request), quantity::parse(limit))
            && asked > most
        {
            let limit = limit
                .as_str()
                .map_or_else(|| limit.to_string(), str::to_owned);
            errors.push(FieldError::invalid(
                format!("{path}.requests"),
                request,
                &format!("must be less than or equal to {resource} limit of {limit}"),
            ));
        }
    }
}
