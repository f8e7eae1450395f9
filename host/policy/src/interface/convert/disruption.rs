//! Between the hooks of disruption and the interfaces `consolidation` and `budgets`.

use hooks::disruption as native;

use super::{extra_column, texts};
use crate::call_context::CallContext;
use crate::interface::bindings::exports::mortise::policy::{budgets, consolidation};
use crate::needs::Need;

pub(in crate::interface) fn with_nodes<R>(
    call: &CallContext<'_>,
    table: &native::NodeTable,
    ask: impl FnOnce(consolidation::Nodes<'_>) -> R,
) -> R {
    let native::NodeTable {
        symbols,
        name,
        nodepool,
        instance_type,
        zone,
        capacity_type,
        price,
        effective_price,
        consolidation_policy,
        age,
        time_to_expiry,
        last_pod_event,
        drift_reason,
        pods,
        blocked_pods,
        disruption_cost,
        cpu_milli,
        cpu_requested_milli,
        memory_mib,
        memory_requested_mib,
        gpus,
        gpus_requested,
        labels,
        extra,
    } = table;
    let symbols = texts(symbols);
    let extra: Vec<_> = extra.iter().map(extra_column).collect();
    let labels: Vec<&[(u32, u32)]> = if call.needs(Need::NodeLabels) {
        labels.iter().map(Vec::as_slice).collect()
    } else {
        Vec::new()
    };
    ask(consolidation::Nodes {
        symbols: &symbols,
        name,
        nodepool,
        instance_type,
        zone,
        capacity_type,
        price,
        effective_price,
        consolidation_policy,
        age,
        time_to_expiry,
        last_pod_event,
        drift_reason,
        pods,
        blocked_pods,
        disruption_cost,
        cpu_milli,
        cpu_requested_milli,
        memory_mib,
        memory_requested_mib,
        gpus,
        gpus_requested,
        labels: &labels,
        extra: &extra,
    })
}

pub(in crate::interface) fn node_pool(view: &native::PoolView) -> consolidation::Pool<'_> {
    let native::PoolView {
        name,
        labels,
        nodes,
        price,
        effective_price,
        disruption_cost,
        recent_hour,
        recent_day,
    } = view;
    consolidation::Pool {
        name: *name,
        labels,
        nodes: *nodes,
        price: *price,
        effective_price: *effective_price,
        disruption_cost: *disruption_cost,
        recent_hour: *recent_hour,
        recent_day: *recent_day,
        extra: &[],
    }
}

pub(in crate::interface) fn proposed(proposed: &native::Move) -> consolidation::Move<'_> {
    let native::Move {
        kind,
        remove,
        cost_before,
        cost_after,
        effective_before,
        effective_after,
        pods_moved,
        singletons_moved,
        max_priority,
        new_nodes,
        replacement_type,
        replacement_zone,
        replacement_capacity_type,
        labels,
    } = proposed;
    consolidation::Move {
        kind: match kind {
            native::MoveKind::Empty => consolidation::MoveKind::Empty,
            native::MoveKind::Delete => consolidation::MoveKind::Delete,
            native::MoveKind::Replace => consolidation::MoveKind::Replace,
            native::MoveKind::Drift => consolidation::MoveKind::Drift,
            native::MoveKind::StaticDrift => consolidation::MoveKind::StaticDrift,
            native::MoveKind::Expire => consolidation::MoveKind::Expire,
        },
        remove,
        cost_before: *cost_before,
        cost_after: *cost_after,
        effective_before: *effective_before,
        effective_after: *effective_after,
        pods_moved: *pods_moved,
        singletons_moved: *singletons_moved,
        max_priority: *max_priority,
        new_nodes: *new_nodes,
        replacement_type: *replacement_type,
        replacement_zone: *replacement_zone,
        replacement_capacity_type: *replacement_capacity_type,
        labels,
        extra: &[],
    }
}

pub(in crate::interface) fn verdict(verdict: consolidation::Verdict) -> native::Verdict {
    let consolidation::Verdict {
        decision,
        score,
        reason,
        retry_after,
        extra: _,
    } = verdict;
    native::Verdict {
        decision: match decision {
            consolidation::Decision::Approve => native::VerdictDecision::Approve,
            consolidation::Decision::Reject => native::VerdictDecision::Reject,
            consolidation::Decision::Hold => native::VerdictDecision::Hold,
        },
        score,
        reason,
        retry_after_seconds: retry_after,
    }
}

/// What a pool borrows.
struct PoolParts<'a> {
    labels: Vec<(&'a str, &'a str)>,
    activity: Vec<budgets::Activity<'static>>,
    declared: Vec<budgets::DeclaredBudget<'a>>,
}

pub(in crate::interface) fn with_pools<R>(
    pools: &[native::BudgetPool],
    ask: impl FnOnce(&[budgets::Pool<'_>]) -> R,
) -> R {
    let parts: Vec<PoolParts<'_>> = pools
        .iter()
        .map(|it| {
            let labels = it.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let activity = native::BudgetReason::ALL.iter().zip(&it.activity);
            PoolParts {
                labels: labels.collect(),
                activity: activity.map(|(it, of)| activity_of(*it, of)).collect(),
                declared: it.declared.iter().map(declared_budget).collect(),
            }
        })
        .collect();
    let pools: Vec<budgets::Pool<'_>> = pools
        .iter()
        .zip(&parts)
        .map(|(it, parts)| pool(it, parts))
        .collect();
    ask(&pools)
}

fn pool<'a>(pool: &'a native::BudgetPool, parts: &'a PoolParts<'a>) -> budgets::Pool<'a> {
    let native::BudgetPool {
        name,
        labels: _,
        total,
        not_ready,
        deleting,
        drifted,
        drift_target,
        renewed,
        target_age_seconds,
        price,
        activity: _,
        pending_pods,
        declared: _,
    } = pool;
    budgets::Pool {
        name,
        labels: &parts.labels,
        total: *total,
        not_ready: *not_ready,
        deleting: *deleting,
        drifted: *drifted,
        drift_target,
        renewed: *renewed,
        target_age: *target_age_seconds,
        price: *price,
        activity: &parts.activity,
        pending_pods: *pending_pods,
        declared: &parts.declared,
        extra: &[],
    }
}

fn reason(reason: native::BudgetReason) -> budgets::Reason {
    match reason {
        native::BudgetReason::Underutilized => budgets::Reason::Underutilized,
        native::BudgetReason::Empty => budgets::Reason::Empty,
        native::BudgetReason::Drifted => budgets::Reason::Drifted,
        native::BudgetReason::Unhealthy => budgets::Reason::Unhealthy,
    }
}

fn activity_of(
    of: native::BudgetReason,
    activity: &native::PoolActivity,
) -> budgets::Activity<'static> {
    let native::PoolActivity {
        disrupting,
        recent_hour,
        recent_day,
        failed_day,
    } = *activity;
    budgets::Activity {
        reason: reason(of),
        disrupting,
        recent_hour,
        recent_day,
        failed_day,
        extra: &[],
    }
}

fn declared_budget(budget: &native::DeclaredBudget) -> budgets::DeclaredBudget<'_> {
    let native::DeclaredBudget {
        nodes,
        resolved,
        active,
        next_change_seconds,
        reasons,
    } = budget;
    let native::BudgetReasons {
        underutilized,
        empty,
        drifted,
        unhealthy,
    } = *reasons;
    let mut set = budgets::Reasons::empty();
    for (present, flag) in [
        (underutilized, budgets::Reasons::UNDERUTILIZED),
        (empty, budgets::Reasons::EMPTY),
        (drifted, budgets::Reasons::DRIFTED),
        (unhealthy, budgets::Reasons::UNHEALTHY),
    ] {
        if present {
            set |= flag;
        }
    }
    budgets::DeclaredBudget {
        nodes,
        resolved: *resolved,
        active: *active,
        next_change: *next_change_seconds,
        reasons: set,
        extra: &[],
    }
}

/// Nothing for a reason that this version does not know.
pub(in crate::interface) fn allowance(allowance: budgets::Allowance) -> Option<native::Allowance> {
    let budgets::Allowance {
        pool,
        reason,
        allowed,
        why,
        extra: _,
    } = allowance;
    let reason = match reason {
        budgets::Reason::Underutilized => native::BudgetReason::Underutilized,
        budgets::Reason::Empty => native::BudgetReason::Empty,
        budgets::Reason::Drifted => native::BudgetReason::Drifted,
        budgets::Reason::Unhealthy => native::BudgetReason::Unhealthy,
        budgets::Reason::Other => return None,
    };
    Some(native::Allowance {
        pool,
        reason,
        allowed,
        why,
        replaces_declared: false,
    })
}
