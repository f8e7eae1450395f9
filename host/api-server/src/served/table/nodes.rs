//! Nodes as `kubectl get nodes` shows them.

use jiff::Timestamp;
use serde_json::Value;

use super::cells::{age, name};
use super::printer::Printer;
use crate::conditions::condition;

pub(super) const PRINTER: Printer = Printer {
    columns: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Roles", "string", 0),
        ("Age", "string", 0),
        ("Version", "string", 0),
        ("Internal-IP", "string", 1),
        ("External-IP", "string", 1),
        ("OS-Image", "string", 1),
        ("Kernel-Version", "string", 1),
        ("Container-Runtime", "string", 1),
    ],
    cells,
};

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = &node["status"]["nodeInfo"];
    let address = |kind: &str| -> Value {
        let addresses = node["status"]["addresses"].as_array();
        let found = addresses
            .into_iter()
            .flatten()
            .find(|a| a["type"].as_str() == Some(kind));
        found
            .and_then(|a| a["address"].as_str())
            .unwrap_or("<none>")
            .into()
    };
    let known = |field: &str| -> Value {
        info[field]
            .as_str()
            .filter(|t| !t.is_empty())
            .unwrap_or("<unknown>")
            .into()
    };
    vec![
        name(node),
        status(node).into(),
        roles(node).into(),
        age(node, now),
        info["kubeletVersion"].as_str().unwrap_or_default().into(),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        known("kernelVersion"),
        known("containerRuntimeVersion"),
    ]
}

fn status(node: &Value) -> String {
    let ready = condition(node, "Ready");
    let mut words = vec![match ready.map(|it| it["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }];
    if node["spec"]["unschedulable"].as_bool() == Some(true) {
        words.push("SchedulingDisabled");
    }
    words.join(",")
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object();
    let roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}
