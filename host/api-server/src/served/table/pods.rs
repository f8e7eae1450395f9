//! Pods as `kubectl get pods` shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{age, count, name, or_none, since};
use super::printer::Printer;
use crate::conditions::is_true;

pub(super) const PRINTER: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Status", "string", 0),
        ("Restarts", "string", 0),
        ("Age", "string", 0),
        ("IP", "string", 1),
        ("Node", "string", 1),
        ("Nominated Node", "string", 1),
        ("Readiness Gates", "string", 1),
    ],
    cells,
};

fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let statuses = || status["containerStatuses"].as_array().into_iter().flatten();
    let total = spec["containers"].as_array().map_or(0, Vec::len);
    let ready = statuses()
        .filter(|c| c["ready"].as_bool() == Some(true))
        .count();
    let restarts: i64 = statuses().map(|c| count(&c["restartCount"])).sum();
    let last_restart = statuses()
        .filter_map(|c| c["lastState"]["terminated"]["finishedAt"].as_str())
        .max()
        .map(|time| since(&time.into(), now));
    let restarts = match last_restart.as_ref().and_then(Value::as_str) {
        Some(ago) if restarts > 0 => format!("{restarts} ({ago} ago)"),
        _ => restarts.to_string(),
    };
    vec![
        name(pod),
        format!("{ready}/{total}").into(),
        status_word(pod).into(),
        restarts.into(),
        age(pod, now),
        or_none(&status["podIP"]),
        or_none(&spec["nodeName"]),
        or_none(&status["nominatedNodeName"]),
        readiness_gates(pod),
    ]
}

fn readiness_gates(pod: &Value) -> Value {
    let gates = pod["spec"]["readinessGates"].as_array();
    let Some(gates) = gates.filter(|gates| !gates.is_empty()) else {
        return "<none>".into();
    };
    let has_passed = |gate: &Value| {
        let condition_type = gate["conditionType"].as_str();
        condition_type.is_some_and(|it| is_true(pod, it))
    };
    let passed = gates.iter().filter(|gate| has_passed(gate)).count();
    format!("{passed}/{}", gates.len()).into()
}

/// The one word that says most about the pod.
fn status_word(pod: &Value) -> String {
    let (metadata, status) = (&pod["metadata"], &pod["status"]);
    let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    let mut word = text(&status["phase"]).unwrap_or_else(|| "Unknown".to_owned());
    if let Some(reason) = text(&status["reason"]) {
        word = reason;
    }
    let is_gated = status["conditions"].as_array().is_some_and(|conditions| {
        conditions.iter().any(|c| {
            c["type"].as_str() == Some("PodScheduled")
                && c["reason"].as_str() == Some("SchedulingGated")
        })
    });
    if is_gated {
        "SchedulingGated".clone_into(&mut word);
    }
    let mut is_initializing = false;
    let init = status["initContainerStatuses"].as_array();
    for (at, container) in init.into_iter().flatten().enumerate() {
        let state = &container["state"];
        if state["terminated"].is_object() && count(&state["terminated"]["exitCode"]) == 0 {
            continue;
        }
        let total = pod["spec"]["initContainers"].as_array().map_or(0, Vec::len);
        word = text(&state["terminated"]["reason"])
            .or_else(|| text(&state["waiting"]["reason"]).filter(|r| r != "PodInitializing"))
            .map_or_else(
                || format!("Init:{at}/{total}"),
                |reason| format!("Init:{reason}"),
            );
        is_initializing = true;
        break;
    }
    if !is_initializing {
        let mut has_running = false;
        let containers = status["containerStatuses"].as_array();
        for container in containers.into_iter().flatten().rev() {
            let state = &container["state"];
            if let Some(reason) =
                text(&state["waiting"]["reason"]).or_else(|| text(&state["terminated"]["reason"]))
            {
                word = reason;
            } else if state["terminated"].is_object() {
                word = format!("ExitCode:{}", count(&state["terminated"]["exitCode"]));
            } else if container["ready"].as_bool() == Some(true) && state["running"].is_object() {
                has_running = true;
            }
        }
        if word == "Completed" && has_running {
            "Running".clone_into(&mut word);
        }
    }
    let is_done = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    if metadata["deletionTimestamp"].is_string() {
        if status["reason"].as_str() == Some("NodeLost") {
            "Unknown".clone_into(&mut word);
        } else if !is_done {
            "Terminating".clone_into(&mut word);
        }
    }
    word
}
