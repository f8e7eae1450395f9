//! Conditions and events as the controllers of Kubernetes write them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api_server::{ApiServer, Resource};

/// A moment as Kubernetes prints it.
pub(crate) fn time_text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Puts a condition into a status; its transition time moves only when the status does.
pub(crate) fn set_condition(status: &mut Value, mut condition: Value, now: Timestamp) {
    let time = time_text(now);
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let old = conditions
        .iter_mut()
        .find(|old| old["type"] == condition["type"]);
    condition["lastTransitionTime"] = match &old {
        Some(old) if old["status"] == condition["status"] => old["lastTransitionTime"].clone(),
        _ => time.into(),
    };
    if let Some(old) = old {
        *old = condition;
    } else {
        conditions.push(condition);
    }
}

/// Writes an event about an object; `kind` is its type and reason.
pub(crate) fn event(
    api: &ApiServer,
    about: &Value,
    kind: (&str, &str),
    message: &str,
    now: Timestamp,
) {
    let metadata = &about["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    let (type_, reason) = kind;
    let component = if reason == "FailedScheduling" {
        "default-scheduler"
    } else {
        "simulator"
    };
    let object = json!({
        "metadata": {
            "generateName": format!("{}.", metadata["name"].as_str().unwrap_or_default()),
            "namespace": namespace,
        },
        "involvedObject": {
            "apiVersion": about["apiVersion"], "kind": about["kind"],
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
        },
        "type": type_, "reason": reason, "message": message, "count": 1,
        "source": { "component": component },
        "reportingComponent": component,
        "firstTimestamp": time_text(now), "lastTimestamp": time_text(now),
    });
    if let Err(status) = api.create(&Resource::EVENTS, namespace, object) {
        tracing::debug!(%status, "an event was refused");
    }
}
