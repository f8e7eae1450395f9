//! Conditions and events as the controllers of Kubernetes write them.

use std::sync::Arc;

use apis::names::DEFAULT_SCHEDULER;
use jiff::Timestamp;
use serde_json::{Value, json};

use api_server::{ApiServer, Resource, StatusError, time_text};

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

/// Events of the simulated controllers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SimulatedEvent {
    FailedCreate,
    FailedScheduling,
    RegisteredNode,
    UnparseableSchedule,
}

impl SimulatedEvent {
    fn event_type(self) -> &'static str {
        match self {
            Self::RegisteredNode => "Normal",
            Self::FailedCreate | Self::FailedScheduling | Self::UnparseableSchedule => "Warning",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::FailedCreate => "FailedCreate",
            Self::FailedScheduling => "FailedScheduling",
            Self::RegisteredNode => "RegisteredNode",
            Self::UnparseableSchedule => "UnparseableSchedule",
        }
    }

    fn component(self) -> &'static str {
        match self {
            Self::FailedScheduling => DEFAULT_SCHEDULER,
            Self::FailedCreate | Self::RegisteredNode | Self::UnparseableSchedule => "simulator",
        }
    }
}

/// Writes an event about an object.
pub(crate) fn write_event(
    api: &ApiServer,
    about: &Value,
    event: SimulatedEvent,
    message: &str,
    now: Timestamp,
) -> Result<Arc<Value>, StatusError> {
    let metadata = &about["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    let component = event.component();
    let object = json!({
        "metadata": {
            "generateName": format!("{}.", metadata["name"].as_str().unwrap_or_default()),
            "namespace": namespace,
        },
        "involvedObject": {
            "apiVersion": about["apiVersion"], "kind": about["kind"],
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
        },
        "type": event.event_type(), "reason": event.reason(), "message": message, "count": 1,
        "source": { "component": component },
        "reportingComponent": component,
        "firstTimestamp": time_text(now), "lastTimestamp": time_text(now),
    });
    api.create(&Resource::EVENTS, namespace, object)
}
