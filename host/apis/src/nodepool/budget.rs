//! A disruption budget: how many nodes of a pool may be disrupted at once, when, and for which reasons.
//!
//! Whether a budget is in force at a moment is for the disruption crate. Answers to Karpenter's
//! `pkg/apis/v1/nodepool.go` (Budget).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DisruptionReason;
use crate::budget_nodes::{BudgetError, BudgetNodes};
use crate::duration::GoDuration;

/// How many nodes of a pool may be disrupted at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Reasons the budget is for; none means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// Most nodes that may be in disruption: a number, or a share of the pool's nodes such as 10%.
    #[serde(default = "default_nodes")]
    #[schemars(regex(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"), extend("default" = "10%"))]
    pub nodes: String,
    /// Cron text, in UTC, of when the budget comes into force; always when absent. Needs a duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long the budget stays in force after each start. Needs a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<GoDuration>,
}

fn default_nodes() -> String {
    "10%".to_owned()
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            reasons: None,
            nodes: default_nodes(),
            schedule: None,
            duration: None,
        }
    }
}

impl Budget {
    /// The allowed number, parsed.
    pub fn allowed_nodes(&self) -> Result<BudgetNodes, BudgetError> {
        BudgetNodes::parse(&self.nodes)
    }

    /// Whether the budget is meant for the reason.
    pub fn covers(&self, reason: DisruptionReason) -> bool {
        self.reasons
            .as_ref()
            .is_none_or(|reasons| reasons.contains(&reason))
    }
}

#[cfg(test)]
mod tests;
