//! Problems that a run reports: pools and classes that are not ready, pods that found no place.
//!
//! It repeats what the objects' own conditions and the controller's decisions say, and judges nothing itself.

use std::collections::BTreeMap;

use api_server::{ApiServer, Resource, Selection};
use apis::conditions;
use serde_json::Value;

/// One line for each problem, capacity before pods. `reasons` has what the controller last said of a pod, by
/// `namespace/name`.
pub(super) fn of(server: &ApiServer, reasons: &BTreeMap<String, String>) -> Vec<String> {
    let everything = Selection::everything();
    let mut problems = Vec::new();
    for resource in [Resource::EC2_NODE_CLASSES, Resource::NODE_POOLS] {
        let objects = server.list(&resource, &everything);
        problems.extend(objects.iter().filter_map(|object| not_ready(object)));
    }
    let pods = server.list(&Resource::PODS, &everything);
    problems.extend(pods.iter().filter_map(|pod| unplaced(pod, reasons)));
    problems
}

/// What the object's conditions say is not as it should be.
fn not_ready(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array()?;
    let faults: Vec<String> = conditions
        .iter()
        .filter(|condition| condition["status"] == "False")
        .filter(|condition| condition["type"] != conditions::READY)
        .map(|condition| {
            format!(
                "{}: {}",
                text(&condition["type"]),
                text(&condition["message"])
            )
        })
        .collect();
    if faults.is_empty() {
        return None;
    }
    let class = text(&object["spec"]["template"]["spec"]["nodeClassRef"]["name"]);
    let refers = if class.is_empty() {
        String::new()
    } else {
        format!(" (spec.template.spec.nodeClassRef.name: {class})")
    };
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    Some(format!(
        "{kind} {name}{refers} is not ready: {}",
        faults.join("; ")
    ))
}

fn unplaced(pod: &Value, reasons: &BTreeMap<String, String>) -> Option<String> {
    if pod["status"]["phase"] != "Pending" || !pod["spec"]["nodeName"].is_null() {
        return None;
    }
    let metadata = &pod["metadata"];
    let name = format!(
        "{}/{}",
        text(&metadata["namespace"]),
        text(&metadata["name"])
    );
    let known = reasons.get(&name).cloned();
    let reason = known.unwrap_or_else(|| scheduler_message(pod));
    // A pod that was given a place has no reason to complain; its node is on the way.
    (!reason.is_empty()).then(|| format!("pod {name} found no place: {reason}"))
}

/// What the scheduler said of a pod that the controller said nothing of.
fn scheduler_message(pod: &Value) -> String {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let message = conditions
        .filter(|condition| condition["type"] == "PodScheduled")
        .find_map(|condition| condition["message"].as_str());
    message
        .unwrap_or("no scheduler has looked at it")
        .to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
