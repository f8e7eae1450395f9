//! Cases for budget policies.

use std::collections::BTreeMap;

use apis::BudgetNodes;
use hooks::disruption::{
    BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, DeclaredBudget, PoolActivity,
};
use serde::Deserialize;

use super::{Case, CaseFaults, NEVER, Uses};
use crate::host::PolicyHost;

/// A reason as NodePools write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum ReasonName {
    Underutilized,
    Empty,
    Drifted,
    Unhealthy,
}

impl ReasonName {
    fn reason(self) -> BudgetReason {
        match self {
            Self::Underutilized => BudgetReason::Underutilized,
            Self::Empty => BudgetReason::Empty,
            Self::Drifted => BudgetReason::Drifted,
            Self::Unhealthy => BudgetReason::Unhealthy,
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct PoolRow {
    name: String,
    labels: BTreeMap<String, String>,
    total: u32,
    not_ready: u32,
    deleting: u32,
    drifted: u32,
    drift_target: String,
    renewed: u32,
    target_age: u32,
    price: f64,
    activity: BTreeMap<ReasonName, ActivityRow>,
    pending_pods: u32,
    /// As NodePools declare them.
    budgets: Vec<BudgetRow>,
}

impl Default for PoolRow {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            labels: BTreeMap::new(),
            total: 0,
            not_ready: 0,
            deleting: 0,
            drifted: 0,
            drift_target: "0".to_owned(),
            renewed: 0,
            target_age: NEVER,
            price: 0.0,
            activity: BTreeMap::new(),
            pending_pods: 0,
            budgets: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ActivityRow {
    disrupting: u32,
    recent_hour: u32,
    recent_day: u32,
    failed_day: u32,
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
                unhealthy: has(ReasonName::Unhealthy),
            },
        }
    }
}

/// As the cluster resolves it; what cannot be understood closes the pool.
fn resolved(nodes: &str, total: u32) -> u32 {
    BudgetNodes::parse(nodes).map_or(0, |it| it.of(total))
}

impl Case {
    pub(super) fn ask_budgets(&self, host: &PolicyHost, faults: &mut CaseFaults) -> Uses {
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
    let activity = |reason: BudgetReason| {
        let mut known = row.activity.iter();
        let own = known.find(|(name, _)| name.reason() == reason);
        let ActivityRow {
            disrupting,
            recent_hour,
            recent_day,
            failed_day,
        } = own.map(|(_, own)| *own).unwrap_or_default();
        PoolActivity {
            disrupting,
            recent_hour,
            recent_day,
            failed_day,
        }
    };
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
        drifted: row.drifted,
        drift_target: row.drift_target.clone(),
        renewed: row.renewed,
        target_age_seconds: row.target_age,
        price: row.price,
        activity: BudgetReason::ALL.map(activity),
        pending_pods: row.pending_pods,
        declared: row
            .budgets
            .iter()
            .map(|it| it.declared(row.total))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::resolved;

    #[test]
    fn budgets_of_cases_resolve_as_those_of_the_cluster() {
        for (nodes, expected) in [
            ("3", 3),
            ("15%", 2),
            ("150%", 0),
            ("+5", 0),
            ("5000000000", u32::MAX),
            ("many", 0),
        ] {
            assert_eq!(resolved(nodes, 10), expected, "{nodes}");
        }
    }
}
