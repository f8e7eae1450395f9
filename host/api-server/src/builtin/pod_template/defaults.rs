//! The defaults of core/v1 for a pod spec.

use serde_json::{Value, json};

/// Sets a field that is absent or null.
pub(in crate::builtin) fn default_to(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object[field].is_null() {
        object[field] = value.into();
    }
}

/// The defaults of core/v1 for a pod spec.
pub(in crate::builtin) fn set_defaults(spec: &mut Value) {
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
