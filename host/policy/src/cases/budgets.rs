//! Cases for budget policies.

use std::collections::BTreeMap;

use disruption::hooks::{
    BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, DeclaredBudget,
};
use serde::Deserialize;

use super::{Case, Faults, Uses};
use crate::host::PolicyHost;

/// A reason as NodePools write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum ReasonName {
    Underutilized,
    Empty,
    Drifted,
}

impl ReasonName {
    fn reason(self) -> BudgetReason {
        match self {
            Self::Underutilized => BudgetReason::Underutilized,
            Self::Empty => BudgetReason::Empty,
            Self::Drifted => BudgetReason::Drifted,
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PoolRow {
    name: String,
    labels: BTreeMap<String, String>,
    total: u32,
    not_ready: u32,
    deleting: u32,
    disrupting: BTreeMap<ReasonName, u32>,
    pending_pods: u32,
    /// As NodePools declare them.
    budgets: Vec<BudgetRow>,
    recent_hour: u32,
    recent_day: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BudgetRow {
    nodes: String,
    #[serde(default = "yes")]
    active: bool,
    #[serde(default)]
    next_change: u32,
    #[serde(default)]
    reasons: Vec<ReasonName>,
}

fn yes() -> bool {
    true
}

impl BudgetRow {
    fn declared(&self, total: u32) -> DeclaredBudget {
        let has = |reason: ReasonName| self.reasons.is_empty() || self.reasons.contains(&reason);
        DeclaredBudget {
            nodes: self.nodes.clone(),
            resolved: resolved(&self.nodes, total),
            active: self.active,
            next_change_seconds: self.next_change,
            reasons: BudgetReasons {
                underutilized: has(ReasonName::Underutilized),
                empty: has(ReasonName::Empty),
                drifted: has(ReasonName::Drifted),
                // Policies are not asked about repair.
                unhealthy: self.reasons.is_empty(),
            },
        }
    }
}

/// A number, or a share of the nodes rounded up; what is neither closes the pool.
fn resolved(nodes: &str, total: u32) -> u32 {
    match nodes.strip_suffix('%') {
        Some(percent) => percent.parse::<u32>().map_or(0, |percent| {
            let share = u64::from(total) * u64::from(percent);
            u32::try_from(share.div_ceil(100)).unwrap_or(u32::MAX)
        }),
        None => nodes.parse().unwrap_or(0),
    }
}

impl Case {
    pub(super) fn ask_budgets(&self, host: &PolicyHost, faults: &mut Faults) -> Uses {
        let answer = host.allow(&BudgetRound {
            context: self.context(),
            pools: self.pools.iter().map(budget_pool).collect(),
        });
        for (name, reasons) in &self.expect.allowed {
            let pool = (0_u32..).zip(&self.pools).find(|(_, it)| it.name == *name);
            let Some((pool, _)) = pool else {
                faults.add(format!("no pool is called {name}"));
                continue;
            };
            for (reason, expected) in reasons {
                let found = answer
                    .items
                    .iter()
                    .find(|it| it.pool == pool && it.reason == reason.reason());
                match found {
                    Some(found) if found.allowed == *expected => {}
                    Some(found) => faults.add(format!(
                        "{name}, {reason:?}: expected {expected}, got {}: {}",
                        found.allowed, found.why
                    )),
                    None => faults.add(format!("{name}, {reason:?}: no allowance")),
                }
            }
        }
        answer.uses
    }
}

fn budget_pool(row: &PoolRow) -> BudgetPool {
    let count = |reason: ReasonName| row.disrupting.get(&reason).copied().unwrap_or(0);
    BudgetPool {
        name: row.name.clone(),
        labels: row
            .labels
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        total: row.total,
        not_ready: row.not_ready,
        deleting: row.deleting,
        disrupting: vec![
            count(ReasonName::Underutilized),
            count(ReasonName::Empty),
            count(ReasonName::Drifted),
        ],
        pending_pods: row.pending_pods,
        declared: row
            .budgets
            .iter()
            .map(|it| it.declared(row.total))
            .collect(),
        recent_hour: row.recent_hour,
        recent_day: row.recent_day,
    }
}
