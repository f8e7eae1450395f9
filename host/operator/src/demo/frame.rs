//! One look at the world: what the live view draws, the plain lines tell and the summary prints.

use serde::Serialize;

/// The state of the world at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Frame {
    pub(crate) virtual_seconds: f64,
    pub(crate) pods_running: usize,
    pub(crate) pods_pending: usize,
    pub(crate) nodes: Vec<NodeLine>,
    pub(crate) nodes_starting: usize,
    pub(crate) launches: u64,
    pub(crate) terminations: u64,
}

/// One node, as a line of the live view and as an entry of the summary.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeLine {
    pub(crate) name: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) capacity_type: String,
    pub(crate) price_per_hour: f64,
    pub(crate) pods: usize,
    /// Requested CPU over allocatable CPU, 0 to 1.
    pub(crate) cpu_utilization: f64,
    /// Requested memory over allocatable memory, 0 to 1.
    #[serde(skip)]
    pub(crate) memory_utilization: f64,
    #[serde(skip)]
    pub(crate) status: NodeStatus,
}

/// What a person wants to know of a node at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum NodeStatus {
    #[default]
    Ready,
    Starting,
    Leaving,
}

impl NodeStatus {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Starting => "starting",
            Self::Leaving => "leaving",
        }
    }
}

impl Frame {
    /// USD an hour of all nodes, rounded to what a bill shows.
    pub(crate) fn price_per_hour(&self) -> f64 {
        round(self.nodes.iter().map(|node| node.price_per_hour).sum(), 4)
    }

    /// Mean of a utilization over the nodes that are up.
    pub(crate) fn mean(&self, of: impl Fn(&NodeLine) -> f64) -> f64 {
        if self.nodes.is_empty() {
            return 0.0;
        }
        self.nodes.iter().map(of).sum::<f64>() / self.nodes.len() as f64
    }
}

/// Rounds to `places` decimals, so that sums of floats print as people write them: a sum of none is a negative zero.
pub(crate) fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale + 0.0
}
