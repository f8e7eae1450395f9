//! Rows of cases for consolidation policies, as people write them, and what they have where nothing is written.

use std::collections::BTreeMap;

use apis::CapacityType;
use hooks::disruption::{MoveKind, VerdictDecision};
use serde::Deserialize;

use super::super::NEVER;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct NodeRow {
    pub(super) name: String,
    pub(super) nodepool: String,
    pub(super) instance_type: String,
    pub(super) zone: String,
    pub(super) capacity_type: CapacityType,
    pub(super) price: f64,
    /// Its price when left out.
    pub(super) effective_price: Option<f64>,
    pub(super) age: u32,
    pub(super) time_to_expiry: u32,
    pub(super) last_pod_event: u32,
    pub(super) drift_reason: String,
    pub(super) pods: u32,
    pub(super) blocked_pods: u32,
    pub(super) disruption_cost: f64,
    pub(super) cpu_milli: u32,
    pub(super) cpu_requested_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) memory_requested_mib: u32,
    pub(super) gpus: u32,
    pub(super) gpus_requested: u32,
    pub(super) labels: BTreeMap<String, String>,
    /// Consolidation policy of the NodePool.
    pub(super) consolidation_policy: String,
}

impl Default for NodeRow {
    fn default() -> Self {
        Self {
            name: "node".to_owned(),
            nodepool: "default".to_owned(),
            instance_type: "m7i.xlarge".to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: CapacityType::OnDemand,
            price: 0.2,
            effective_price: None,
            age: 3600,
            time_to_expiry: NEVER,
            last_pod_event: NEVER,
            drift_reason: String::new(),
            pods: 5,
            blocked_pods: 0,
            disruption_cost: 5.0,
            cpu_milli: 4000,
            cpu_requested_milli: 1000,
            memory_mib: 16_384,
            memory_requested_mib: 4096,
            gpus: 0,
            gpus_requested: 0,
            labels: BTreeMap::new(),
            consolidation_policy: "WhenEmptyOrUnderutilized".to_owned(),
        }
    }
}

impl NodeRow {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn effective_price(&self) -> f64 {
        self.effective_price.unwrap_or(self.price)
    }
}

/// A NodePool with all its nodes; what is left out is that of the candidates.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct NodePoolRow {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) nodes: Option<u32>,
    pub(super) price: Option<f64>,
    pub(super) effective_price: Option<f64>,
    pub(super) disruption_cost: Option<f64>,
    pub(super) recent_hour: u32,
    pub(super) recent_day: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MoveRow {
    pub(super) kind: MoveKind,
    /// Names of the nodes that go.
    pub(super) remove: Vec<String>,
    /// Their prices when left out.
    #[serde(default)]
    pub(super) cost_before: Option<f64>,
    #[serde(default)]
    pub(super) cost_after: f64,
    /// The effective prices of the nodes when left out.
    #[serde(default)]
    pub(super) effective_before: Option<f64>,
    /// As `costAfter` when left out.
    #[serde(default)]
    pub(super) effective_after: Option<f64>,
    /// The pods of the nodes when left out.
    #[serde(default)]
    pub(super) pods_moved: Option<u32>,
    #[serde(default)]
    pub(super) singletons_moved: u32,
    #[serde(default)]
    pub(super) max_priority: i32,
    #[serde(default)]
    pub(super) new_nodes: Option<u32>,
    #[serde(default)]
    pub(super) replacement_type: String,
    #[serde(default)]
    pub(super) replacement_zone: String,
    #[serde(default)]
    pub(super) replacement_capacity_type: Option<CapacityType>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

/// A verdict, or a verdict with words of its reason.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Expected {
    Decision(VerdictDecision),
    Whole {
        decision: VerdictDecision,
        #[serde(default)]
        reason: String,
    },
}

impl Expected {
    pub(super) fn decision(&self) -> VerdictDecision {
        match self {
            Self::Decision(decision) | Self::Whole { decision, .. } => *decision,
        }
    }

    pub(super) fn reason(&self) -> &str {
        match self {
            Self::Decision(_) => "",
            Self::Whole { reason, .. } => reason,
        }
    }
}
