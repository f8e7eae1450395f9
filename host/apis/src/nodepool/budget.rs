//! A disruption budget: how many nodes of a pool may be disrupted at once, when, and for which reasons.
//!
//! Whether a budget is in force at a moment is for the disruption crate. Answers to Karpenter's
//! `pkg/apis/v1/nodepool.go` (Budget).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DisruptionReason;
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

/// The number of nodes a budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetNodes {
    /// So many nodes.
    Count(u32),
    /// So many hundredths of the pool's nodes, rounded up.
    Percent(u32),
}

/// A budget whose text cannot be understood; such a budget allows nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("budget nodes {nodes:?}: expected a number or a percentage up to 100%")]
pub struct BudgetError {
    /// Nodes as the budget writes them.
    pub nodes: String,
}

impl BudgetNodes {
    /// How many nodes of a pool of `nodes_total` that is.
    ///
    /// A share is rounded up, so that a pool of few nodes is not stuck for ever, as Karpenter does.
    pub fn of(self, nodes_total: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let share = (u64::from(nodes_total) * u64::from(percent)).div_ceil(100);
                u32::try_from(share).unwrap_or(u32::MAX)
            }
        }
    }
}

impl Budget {
    /// The allowed number, parsed.
    pub fn allowed_nodes(&self) -> Result<BudgetNodes, BudgetError> {
        let error = || BudgetError {
            nodes: self.nodes.clone(),
        };
        let (digits, is_percent) = match self.nodes.strip_suffix('%') {
            Some(digits) => (digits, true),
            None => (self.nodes.as_str(), false),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        // A count beyond any cluster means the same as the greatest count.
        let number = digits.parse().unwrap_or(u32::MAX);
        match is_percent {
            true if number > 100 => Err(error()),
            true => Ok(BudgetNodes::Percent(number)),
            false => Ok(BudgetNodes::Count(number)),
        }
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
