//! Between the hooks' own types and those of the interface. Columns are copied, nothing is judged.

use disruption::hooks as native;
use scheduling::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable, RankRound,
};

use crate::bindings::exports::mortise::policy::{budgets, consolidation, rank};
use crate::bindings::mortise::policy::types;

pub(crate) fn context(context: &native::Context) -> types::Context {
    let native::Context {
        now_seconds,
        civil,
        cluster,
        decision_id,
        seed,
    } = context;
    types::Context {
        now: *now_seconds,
        civil: civil.iter().map(civil_time).collect(),
        cluster: cluster.clone(),
        decision_id: decision_id.clone(),
        seed: *seed,
    }
}

/// The context of a rank round, which carries only the moment: the calendar is added in UTC.
pub(crate) fn rank_context(round: &RankRound) -> native::Context {
    let now = i64::try_from(round.now_seconds)
        .ok()
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    native::Context {
        now_seconds: round.now_seconds,
        civil: now.map(native::Civil::utc).into_iter().collect(),
        cluster: round.cluster.clone(),
        decision_id: round.decision_id.clone(),
        seed: round.seed,
    }
}

fn civil_time(civil: &native::Civil) -> types::Civil {
    let native::Civil {
        zone,
        year,
        month,
        day,
        weekday,
        hour,
        minute,
        utc_offset_minutes,
        calendars,
    } = civil;
    types::Civil {
        zone: zone.clone(),
        year: *year,
        month: *month,
        day: *day,
        weekday: *weekday,
        hour: *hour,
        minute: *minute,
        utc_offset_minutes: *utc_offset_minutes,
        calendars: calendars.clone(),
    }
}

/// The table, with another `prior` column where a chain has come further.
pub(crate) fn offerings(table: &OfferingTable, prior: Vec<f64>) -> rank::Offerings {
    let OfferingTable {
        symbols,
        instance_type,
        family,
        zone,
        arch,
        capacity_type,
        price,
        on_demand_price,
        cpu_milli,
        memory_mib,
        gpus,
        max_pods,
        reservation_slots,
        ice_count,
        ice_age,
        interruption_rate,
        in_use,
        prior: _,
        extra,
    } = table;
    rank::Offerings {
        symbols: symbols.clone(),
        instance_type: instance_type.clone(),
        family: family.clone(),
        zone: zone.clone(),
        arch: arch.clone(),
        capacity_type: capacity_type.clone(),
        price: price.clone(),
        on_demand_price: on_demand_price.clone(),
        cpu_milli: cpu_milli.clone(),
        memory_mib: memory_mib.clone(),
        gpus: gpus.clone(),
        max_pods: max_pods.clone(),
        reservation_slots: reservation_slots.clone(),
        ice_count: ice_count.clone(),
        ice_age: ice_age.clone(),
        interruption_rate: interruption_rate.clone(),
        in_use: in_use.clone(),
        prior,
        extra: extra.iter().map(extra_column).collect(),
    }
}

fn extra_column(column: &ExtraColumn) -> types::ExtraColumn {
    let ExtraColumn { name, values } = column;
    types::ExtraColumn {
        name: name.clone(),
        values: match values {
            ExtraValues::Floats(values) => types::Column::Floats(values.clone()),
            ExtraValues::Ints(values) => types::Column::Ints(values.clone()),
            ExtraValues::Syms(values) => types::Column::Syms(values.clone()),
            ExtraValues::Bytes(values) => types::Column::Bytes(values.clone()),
        },
    }
}

pub(crate) fn claim(view: &ClaimView) -> rank::Claim {
    let ClaimView {
        nodepool,
        weight,
        candidates,
        requirements,
        pods,
        labels,
    } = view;
    rank::Claim {
        nodepool: *nodepool,
        weight: *weight,
        candidates: candidates.clone(),
        requirements: requirements.iter().map(requirement).collect(),
        pods: rank::PodsSummary {
            count: pods.count,
            cpu_milli: pods.cpu_milli,
            memory_mib: pods.memory_mib,
            gpus: pods.gpus,
            max_priority: pods.max_priority,
            do_not_disrupt: pods.do_not_disrupt,
            replicated: pods.replicated,
            expected_runtime: pods.expected_runtime_seconds,
        },
        labels: labels.clone(),
    }
}

fn requirement(requirement: &ClaimRequirement) -> rank::Requirement {
    let ClaimRequirement {
        key,
        operator,
        values,
        min_values,
    } = requirement;
    rank::Requirement {
        key: *key,
        operator: match operator {
            ClaimOperator::InSet => rank::Operator::InSet,
            ClaimOperator::NotIn => rank::Operator::NotIn,
            ClaimOperator::Exists => rank::Operator::Exists,
            ClaimOperator::DoesNotExist => rank::Operator::DoesNotExist,
            ClaimOperator::Greater => rank::Operator::Greater,
            ClaimOperator::Less => rank::Operator::Less,
        },
        values: values.clone(),
        min_values: *min_values,
    }
}

pub(crate) fn nodes(table: &native::NodeTable) -> consolidation::Nodes {
    let native::NodeTable {
        symbols,
        name,
        nodepool,
        instance_type,
        zone,
        capacity_type,
        price,
        age,
        time_to_expiry,
        pods,
        blocked_pods,
        disruption_cost,
        cpu_milli,
        cpu_requested_milli,
        memory_mib,
        memory_requested_mib,
        extra,
    } = table;
    consolidation::Nodes {
        symbols: symbols.clone(),
        name: name.clone(),
        nodepool: nodepool.clone(),
        instance_type: instance_type.clone(),
        zone: zone.clone(),
        capacity_type: capacity_type.clone(),
        price: price.clone(),
        age: age.clone(),
        time_to_expiry: time_to_expiry.clone(),
        pods: pods.clone(),
        blocked_pods: blocked_pods.clone(),
        disruption_cost: disruption_cost.clone(),
        cpu_milli: cpu_milli.clone(),
        cpu_requested_milli: cpu_requested_milli.clone(),
        memory_mib: memory_mib.clone(),
        memory_requested_mib: memory_requested_mib.clone(),
        extra: extra.iter().map(extra_column).collect(),
    }
}

pub(crate) fn proposed(proposed: &native::Move) -> consolidation::Move {
    let native::Move {
        kind,
        remove,
        cost_before,
        cost_after,
        pods_moved,
        singletons_moved,
        max_priority,
        new_nodes,
        replacement_type,
        replacement_spot,
        recent_hour,
        recent_day,
        labels,
    } = proposed;
    consolidation::Move {
        kind: match kind {
            native::MoveKind::Empty => consolidation::MoveKind::Empty,
            native::MoveKind::Delete => consolidation::MoveKind::Delete,
            native::MoveKind::Replace => consolidation::MoveKind::Replace,
            native::MoveKind::Drift => consolidation::MoveKind::Drift,
            native::MoveKind::Expire => consolidation::MoveKind::Expire,
        },
        remove: remove.clone(),
        cost_before: *cost_before,
        cost_after: *cost_after,
        pods_moved: *pods_moved,
        singletons_moved: *singletons_moved,
        max_priority: *max_priority,
        new_nodes: *new_nodes,
        replacement_type: *replacement_type,
        replacement_spot: *replacement_spot,
        recent_hour: *recent_hour,
        recent_day: *recent_day,
        labels: labels.clone(),
    }
}

pub(crate) fn verdict(verdict: consolidation::Verdict) -> native::Verdict {
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

pub(crate) fn pool(pool: &native::BudgetPool) -> budgets::Pool {
    let native::BudgetPool {
        name,
        labels,
        total,
        not_ready,
        deleting,
        disrupting,
        pending_pods,
        declared,
        recent_hour,
        recent_day,
    } = pool;
    budgets::Pool {
        name: name.clone(),
        labels: labels.clone(),
        total: *total,
        not_ready: *not_ready,
        deleting: *deleting,
        disrupting: disrupting.clone(),
        pending_pods: *pending_pods,
        declared: declared.iter().map(declared_budget).collect(),
        recent_hour: *recent_hour,
        recent_day: *recent_day,
    }
}

fn declared_budget(budget: &native::DeclaredBudget) -> budgets::DeclaredBudget {
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
        nodes: nodes.clone(),
        resolved: *resolved,
        active: *active,
        next_change: *next_change_seconds,
        reasons: set,
    }
}

pub(crate) fn allowance(allowance: budgets::Allowance) -> native::Allowance {
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
