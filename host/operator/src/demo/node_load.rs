//! Load of a node: what its pods ask for, and how the node is.

use crate::demo::frame::NodeStatus;
use apis::labels;
use serde_json::Value;

/// Requests of the pods of a node, in milli-units.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Requested {
    pub(super) pods: usize,
    pub(super) cpu: f64,
    pub(super) memory: f64,
}

impl Requested {
    pub(super) fn add(&mut self, pod: &Value) {
        self.pods += 1;
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            let requests = &container["resources"]["requests"];
            self.cpu += millis(&requests["cpu"]);
            self.memory += millis(&requests["memory"]);
        }
    }
}

pub(super) fn millis(quantity: &Value) -> f64 {
    let text = quantity
        .as_str()
        .map_or_else(|| quantity.to_string(), str::to_owned);
    apis::quantity::parse_millis(&text).map_or(0.0, |millis| millis as f64)
}

pub(super) fn share(used: f64, whole: f64) -> f64 {
    if whole > 0.0 { used / whole } else { 0.0 }
}

pub(super) fn node_status(node: &Value) -> NodeStatus {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let is_disrupted = taints
        .clone()
        .any(|taint| taint["key"] == labels::DISRUPTED_TAINT_KEY);
    let conditions = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let is_ready = conditions
        .clone()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    if is_disrupted || !node["metadata"]["deletionTimestamp"].is_null() {
        NodeStatus::Leaving
    } else if is_ready {
        NodeStatus::Ready
    } else {
        NodeStatus::Starting
    }
}
