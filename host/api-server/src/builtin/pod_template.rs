//! Pod specs, in pods and in the templates of workloads: defaults and the rules that matter.

use serde_json::{Value, json};

use super::super::quantity;
use super::super::status::FieldError;
use super::metadata::{is_label_name, qualified_name_problem, validate_labels};

/// Sets a field that is absent or null.
pub(super) fn default_to(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object[field].is_null() {
        object[field] = value.into();
    }
}

/// The defaults of core/v1 for a pod spec.
pub(super) fn set_defaults(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default_to(spec, "restartPolicy", "Always");
    default_to(spec, "terminationGracePeriodSeconds", 30);
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "schedulerName", "default-scheduler");
    default_to(spec, "securityContext", json!({}));
    if spec["hostNetwork"].as_bool() != Some(true) {
        default_to(spec, "enableServiceLinks", true);
    }
    let is_host_network = spec["hostNetwork"].as_bool() == Some(true);
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            set_container_defaults(container, is_host_network);
        }
    }
    for volume in spec["volumes"].as_array_mut().into_iter().flatten() {
        set_volume_defaults(volume);
    }
    for constraint in spec["topologySpreadConstraints"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        default_to(constraint, "whenUnsatisfiable", "DoNotSchedule");
    }
}

fn set_container_defaults(container: &mut Value, is_host_network: bool) {
    if !container.is_object() {
        return;
    }
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image
        .rsplit('/')
        .next()
        .and_then(|last| last.split_once(':'))
        .map(|(_, t)| t);
    let is_latest = !image.contains('@') && tag.is_none_or(|t| t == "latest");
    default_to(
        container,
        "imagePullPolicy",
        if is_latest { "Always" } else { "IfNotPresent" },
    );
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    default_to(container, "resources", json!({}));
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        default_to(port, "protocol", "TCP");
        if is_host_network && port["hostPort"].is_null() {
            port["hostPort"] = port["containerPort"].clone();
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            let probe = &mut container[probe];
            default_to(probe, "timeoutSeconds", 1);
            default_to(probe, "periodSeconds", 10);
            default_to(probe, "successThreshold", 1);
            default_to(probe, "failureThreshold", 3);
            if probe["httpGet"].is_object() {
                default_to(&mut probe["httpGet"], "path", "/");
                default_to(&mut probe["httpGet"], "scheme", "HTTP");
            }
        } else if container[probe].is_null()
            && let Some(fields) = container.as_object_mut()
        {
            fields.remove(probe);
        }
    }
    if let Some(fields) = container.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    // A limit without a request is also the request.
    if let Some(limits) = container["resources"]["limits"].as_object().cloned() {
        for (resource, limit) in limits {
            default_to(&mut container["resources"]["requests"], &resource, limit);
        }
    }
}

fn set_volume_defaults(volume: &mut Value) {
    for (source, field, value) in [
        ("configMap", "defaultMode", 420),
        ("secret", "defaultMode", 420),
        ("projected", "defaultMode", 420),
        ("downwardAPI", "defaultMode", 420),
    ] {
        if volume.get(source).is_some_and(Value::is_object) {
            default_to(&mut volume[source], field, value);
        }
    }
    if volume.get("hostPath").is_some_and(Value::is_object) {
        default_to(&mut volume["hostPath"], "type", "");
    }
    if let Some(claim) = volume
        .get_mut("ephemeral")
        .and_then(|e| e.get_mut("volumeClaimTemplate"))
    {
        default_to(&mut claim["spec"], "volumeMode", "Filesystem");
    }
}

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

fn validate_choice(
    object: &Value,
    field: &str,
    allowed: &[&str],
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let value = &object[field];
    if value.as_str().is_some_and(|v| !allowed.contains(&v)) {
        let mut allowed: Vec<String> = allowed.iter().map(|&a| a.to_owned()).collect();
        allowed.sort();
        errors.push(FieldError::not_supported(
            format!("{path}.{field}"),
            value,
            &allowed,
        ));
    }
}

fn validate_container(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
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

fn validate_tolerations(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (at, toleration) in spec["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let path = format!("{path}.tolerations[{at}]");
        let key = toleration["key"].as_str().unwrap_or_default();
        if !key.is_empty()
            && let Some(problem) = qualified_name_problem(key)
        {
            errors.push(FieldError::invalid(
                format!("{path}.key"),
                &toleration["key"],
                problem,
            ));
        }
        if key.is_empty() && toleration["operator"].as_str() != Some("Exists") {
            errors.push(FieldError::invalid(
                format!("{path}.operator"),
                &toleration["operator"],
                "operator must be Exists when `key` is empty, which means \"match all values and \
                 all keys\"",
            ));
        }
        validate_choice(toleration, "operator", &["Equal", "Exists"], &path, errors);
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if toleration["effect"].as_str() != Some("") {
            validate_choice(toleration, "effect", &effects, &path, errors);
        }
    }
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

fn validate_spread(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let constraints = spec["topologySpreadConstraints"]
        .as_array()
        .into_iter()
        .flatten();
    for (at, constraint) in constraints.enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{at}]");
        if constraint["maxSkew"].as_i64().is_none_or(|skew| skew <= 0) {
            let problem = "must be greater than zero";
            errors.push(FieldError::invalid(
                format!("{path}.maxSkew"),
                &constraint["maxSkew"],
                problem,
            ));
        }
        if constraint["topologyKey"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(
                format!("{path}.topologyKey"),
                "can not be empty",
            ));
        }
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        validate_choice(constraint, "whenUnsatisfiable", &choices, &path, errors);
    }
}

fn validate_affinity(affinity: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    let required = &affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let terms = required["nodeSelectorTerms"].as_array();
    for (at, term) in terms.into_iter().flatten().enumerate() {
        let expressions = term["matchExpressions"].as_array().into_iter().flatten();
        for (expression_at, expression) in expressions.enumerate() {
            let path = format!(
                "{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.\
                 nodeSelectorTerms[{at}].matchExpressions[{expression_at}]"
            );
            validate_choice(expression, "operator", &OPERATORS, &path, errors);
            let needs_values = matches!(expression["operator"].as_str(), Some("In" | "NotIn"));
            if needs_values && expression["values"].as_array().is_none_or(Vec::is_empty) {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{path}.values"), detail));
            }
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"].as_array();
        for (at, term) in terms.into_iter().flatten().enumerate() {
            if term["topologyKey"].as_str().is_none_or(str::is_empty) {
                let field = format!(
                    "{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{at}].topologyKey"
                );
                errors.push(FieldError::required(field, "can not be empty"));
            }
        }
    }
}
