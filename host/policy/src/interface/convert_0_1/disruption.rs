//! Between the hooks of disruption and the interfaces `consolidation` and `budgets` as 0.1 had them.

use std::collections::BTreeMap;

use apis::CapacityType;
use hooks::columns::index;
use hooks::disruption as native;

use super::extra_column;
use crate::interface::bindings_0_1::exports::mortise::policy::{budgets, consolidation};
use crate::interface::bindings_0_1::mortise::policy::types;
use crate::interface::convert::texts;

/// The extra columns by which consolidation policies were told of their pools.
const CONSOLIDATION_POLICY: &str = "consolidation-policy";
const POOL_TOTAL_COST: &str = "pool-total-cost";
const POOL_TOTAL_DISRUPTION: &str = "pool-total-disruption";

pub(in crate::interface) fn with_nodes<R>(
    round: &native::ConsolidationRound,
    ask: impl FnOnce(consolidation::Nodes<'_>) -> R,
) -> R {
    let native::NodeTable {
        symbols,
        name,
        nodepool,
        instance_type,
        zone,
        capacity_type,
        price: _,
        effective_price,
        consolidation_policy,
        age,
        time_to_expiry,
        last_pod_event: _,
        drift_reason: _,
        pods,
        blocked_pods,
        disruption_cost,
        cpu_milli,
        cpu_requested_milli,
        memory_mib,
        memory_requested_mib,
        gpus: _,
        gpus_requested: _,
        labels: _,
        extra,
    } = &round.nodes;
    let symbols = texts(symbols);
    let of_pool = |total: fn(&native::PoolView) -> f64| -> Vec<f64> {
        let totals = round.pools.iter().map(|it| (it.name, total(it)));
        let totals: BTreeMap<u32, f64> = totals.collect();
        let own = nodepool.iter().map(|pool| totals.get(pool).copied());
        own.map(Option::unwrap_or_default).collect()
    };
    let cost = of_pool(|it| it.effective_price);
    let disruption = of_pool(|it| it.disruption_cost);
    let mut extra: Vec<_> = extra.iter().map(extra_column).collect();
    let column = |name, values| types::ExtraColumn { name, values };
    extra.push(column(
        CONSOLIDATION_POLICY,
        types::Column::Syms(consolidation_policy),
    ));
    extra.push(column(POOL_TOTAL_COST, types::Column::Floats(&cost)));
    extra.push(column(
        POOL_TOTAL_DISRUPTION,
        types::Column::Floats(&disruption),
    ));
    ask(consolidation::Nodes {
        symbols: &symbols,
        name,
        nodepool,
        instance_type,
        zone,
        capacity_type,
        price: effective_price,
        age,
        time_to_expiry,
        pods,
        blocked_pods,
        disruption_cost,
        cpu_milli,
        cpu_requested_milli,
        memory_mib,
        memory_requested_mib,
        extra: &extra,
    })
}

pub(in crate::interface) fn proposed<'a>(
    round: &native::ConsolidationRound,
    proposed: &'a native::Move,
) -> consolidation::Move<'a> {
    let native::Move {
        kind,
        remove,
        cost_before: _,
        cost_after: _,
        effective_before,
        effective_after,
        pods_moved,
        singletons_moved,
        max_priority,
        new_nodes,
        replacement_type,
        replacement_zone: _,
        replacement_capacity_type,
        labels,
    } = proposed;
    // Moves of the pool were counted with the move: those of the first node's.
    let row = remove.first().map(|row| index(*row));
    let pool = row.and_then(|row| round.nodes.nodepool.get(row));
    let pool = round.pools.iter().find(|it| Some(&it.name) == pool);
    consolidation::Move {
        kind: match kind {
            native::MoveKind::Empty => consolidation::MoveKind::Empty,
            native::MoveKind::Delete => consolidation::MoveKind::Delete,
            native::MoveKind::Replace => consolidation::MoveKind::Replace,
            native::MoveKind::Drift | native::MoveKind::StaticDrift => {
                consolidation::MoveKind::Drift
            }
            native::MoveKind::Expire => consolidation::MoveKind::Expire,
        },
        remove,
        cost_before: *effective_before,
        cost_after: *effective_after,
        pods_moved: *pods_moved,
        singletons_moved: *singletons_moved,
        max_priority: *max_priority,
        new_nodes: *new_nodes,
        replacement_type: *replacement_type,
        replacement_spot: *replacement_capacity_type == CapacityType::Spot.code(),
        recent_hour: pool.map_or(0, |it| it.recent_hour),
        recent_day: pool.map_or(0, |it| it.recent_day),
        labels,
    }
}

pub(in crate::interface) fn verdict(verdict: consolidation::Verdict) -> native::Verdict {
    let consolidation::Verdict {
        decision,
        score,
        reason,
        retry_after,
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
struct PoolPartsOf01<'a> {
    labels: Vec<(&'a str, &'a str)>,
    declared: Vec<budgets::DeclaredBudget<'a>>,
    disrupting: [u32; native::BudgetReason::JUDGED.len()],
}

pub(in crate::interface) fn with_pools<R>(
    pools: &[native::BudgetPool],
    ask: impl FnOnce(&[budgets::Pool<'_>]) -> R,
) -> R {
    let parts: Vec<PoolPartsOf01<'_>> = pools
        .iter()
        .map(|it| {
            let labels = it.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let disrupting = |reason: native::BudgetReason| {
                let own = it.activity.get(reason.index());
                own.map_or(0, |own| own.disrupting)
            };
            PoolPartsOf01 {
                labels: labels.collect(),
                declared: it.declared.iter().map(declared_budget).collect(),
                disrupting: native::BudgetReason::JUDGED.map(disrupting),
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

fn pool<'a>(pool: &'a native::BudgetPool, parts: &'a PoolPartsOf01<'a>) -> budgets::Pool<'a> {
    let sum = |count: fn(&native::PoolActivity) -> u32| {
        let counts = pool.activity.iter().map(count);
        counts.fold(0, u32::saturating_add)
    };
    budgets::Pool {
        name: &pool.name,
        labels: &parts.labels,
        total: pool.total,
        not_ready: pool.not_ready,
        deleting: pool.deleting,
        disrupting: &parts.disrupting,
        pending_pods: pool.pending_pods,
        declared: &parts.declared,
        recent_hour: sum(|it| it.recent_hour),
        recent_day: sum(|it| it.recent_day),
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
    let mut set = budgets::Reasons::empty();
    for (present, flag) in [
        (reasons.underutilized, budgets::Reasons::UNDERUTILIZED),
        (reasons.empty, budgets::Reasons::EMPTY),
        (reasons.drifted, budgets::Reasons::DRIFTED),
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
    }
}

pub(in crate::interface) fn allowance(allowance: budgets::Allowance) -> native::Allowance {
    let budgets::Allowance {
        pool,
        reason,
        allowed,
        why,
    } = allowance;
    native::Allowance {
        pool,
        reason: match reason {
            budgets::Reason::Underutilized => native::BudgetReason::Underutilized,
            budgets::Reason::Empty => native::BudgetReason::Empty,
            budgets::Reason::Drifted => native::BudgetReason::Drifted,
        },
        allowed,
        why,
        replaces_declared: false,
    }
}
