//! Questions of budgets as cases write them: NodePools with what they declare.

use hooks::disruption::{Allowance, BudgetPool, BudgetReason, BudgetRound, DeclaredBudget};
use serde_json::{Value, json};

use super::super::Draft;
use super::draft::{CaseRow, draft};

/// The first NodePools, with what the policy said of them.
pub(crate) fn allow(round: &BudgetRound, items: &[Allowance], rows_max: usize) -> Draft {
    let mut allowed = CaseRow::new();
    for (number, pool) in (0_u32..).zip(&round.pools).take(rows_max) {
        let of_pool = items.iter().filter(|it| it.pool == number);
        let reasons = of_pool.map(|it| (it.reason.as_str().to_owned(), json!(it.allowed)));
        let reasons: CaseRow = reasons.collect();
        if !reasons.is_empty() {
            allowed.insert(pool.name.clone(), Value::Object(reasons));
        }
    }
    let pools: Vec<Value> = round.pools.iter().take(rows_max).map(pool_row).collect();
    draft(
        &[(round.pools.len() - pools.len(), "NodePools")],
        [
            (
                "name",
                json!(format!("{}, budgets", round.context.decision_id)),
            ),
            ("pools", json!(pools)),
            ("expect", json!({"allowed": allowed})),
        ],
    )
}

fn pool_row(pool: &BudgetPool) -> Value {
    let labels: CaseRow = pool
        .labels
        .iter()
        .map(|(key, it)| (key.clone(), json!(it)))
        .collect();
    let activity = BudgetReason::ALL.into_iter().zip(&pool.activity);
    let activity: CaseRow = activity
        .map(|(reason, it)| {
            let counts = json!({
                "disrupting": it.disrupting,
                "recentHour": it.recent_hour,
                "recentDay": it.recent_day,
                "failedDay": it.failed_day,
            });
            (reason.as_str().to_owned(), counts)
        })
        .collect();
    let budgets: Vec<Value> = pool.declared.iter().map(budget_row).collect();
    json!({
        "name": pool.name,
        "labels": labels,
        "total": pool.total,
        "notReady": pool.not_ready,
        "deleting": pool.deleting,
        "drifted": pool.drifted,
        "driftTarget": pool.drift_target,
        "renewed": pool.renewed,
        "targetAge": pool.target_age_seconds,
        "price": pool.price,
        "activity": activity,
        "pendingPods": pool.pending_pods,
        "budgets": budgets,
    })
}

fn budget_row(budget: &DeclaredBudget) -> Value {
    let all = BudgetReason::ALL.into_iter();
    let reasons = all.filter(|it| budget.reasons.contains(*it));
    let reasons: Vec<&str> = reasons.map(BudgetReason::as_str).collect();
    json!({
        "nodes": budget.nodes,
        "active": budget.active,
        "nextChange": budget.next_change_seconds,
        "reasons": reasons,
    })
}
