//! Between the hooks' own types and those of the interface. Nothing is copied but what comes back, nothing is
//! judged.
//!
//! A question borrows the columns of its round, and wasmtime copies them into the guest from where they are.
//! What must be made for it (lists of references) lives on the stack of a `with_` function.

use disruption::hooks as native;
use scheduling::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable, RankRound,
};

use crate::bindings::exports::mortise::policy::{budgets, consolidation, rank};
use crate::bindings::mortise::policy::types;

pub(crate) fn with_context<R>(
    context: &native::Context,
    ask: impl FnOnce(types::Context<'_>) -> R,
) -> R {
    let native::Context {
        now_seconds,
        civil,
        cluster,
        decision_id,
        seed,
    } = context;
    let calendars: Vec<Vec<&str>> = civil.iter().map(|it| texts(&it.calendars)).collect();
    let times = civil.iter().zip(&calendars);
    let civil: Vec<types::Civil<'_>> = times.map(|(it, names)| civil_time(it, names)).collect();
    ask(types::Context {
        now: *now_seconds,
        civil: &civil,
        cluster,
        decision_id,
        seed: *seed,
    })
}

fn texts(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
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

fn civil_time<'a>(civil: &'a native::Civil, names: &'a [&'a str]) -> types::Civil<'a> {
    let native::Civil {
        zone,
        year,
        month,
        day,
        weekday,
        hour,
        minute,
        utc_offset_minutes,
        calendars: _,
    } = civil;
    types::Civil {
        zone,
        year: *year,
        month: *month,
        day: *day,
        weekday: *weekday,
        hour: *hour,
        minute: *minute,
        utc_offset_minutes: *utc_offset_minutes,
        calendars: names,
    }
}

/// The table, with another `prior` column where a chain has come further.
pub(crate) fn with_offerings<R>(
    table: &OfferingTable,
    prior: &[f64],
    ask: impl FnOnce(rank::Offerings<'_>) -> R,
) -> R {
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
    let symbols = texts(symbols);
    let extra: Vec<_> = extra.iter().map(extra_column).collect();
    ask(rank::Offerings {
        symbols: &symbols,
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
        prior,
        extra: &extra,
    })
}

fn extra_column(column: &ExtraColumn) -> types::ExtraColumn<'_> {
    let ExtraColumn { name, values } = column;
    types::ExtraColumn {
        name,
        values: match values {
            ExtraValues::Floats(values) => types::Column::Floats(values),
            ExtraValues::Ints(values) => types::Column::Ints(values),
            ExtraValues::Syms(values) => types::Column::Syms(values),
            ExtraValues::Bytes(values) => types::Column::Bytes(values),
        },
    }
}

pub(crate) fn with_claims<R>(views: &[&ClaimView], ask: impl FnOnce(&[rank::Claim<'_>]) -> R) -> R {
    let requirements: Vec<Vec<rank::Requirement<'_>>> = views
        .iter()
        .map(|view| view.requirements.iter().map(requirement).collect())
        .collect();
    let claims: Vec<rank::Claim<'_>> = views
        .iter()
        .zip(&requirements)
        .map(|(view, requirements)| claim(view, requirements))
        .collect();
    ask(&claims)
}

fn claim<'a>(view: &'a ClaimView, requirements: &'a [rank::Requirement<'a>]) -> rank::Claim<'a> {
    let ClaimView {
        nodepool,
        weight,
        candidates,
        requirements: _,
        pods,
        labels,
    } = view;
    rank::Claim {
        nodepool: *nodepool,
        weight: *weight,
        candidates,
        requirements,
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
        labels,
    }
}

fn requirement(requirement: &ClaimRequirement) -> rank::Requirement<'_> {
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
        values,
        min_values: *min_values,
    }
}

pub(crate) fn with_nodes<R>(
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
    let symbols = texts(symbols);
    let extra: Vec<_> = extra.iter().map(extra_column).collect();
    ask(consolidation::Nodes {
        symbols: &symbols,
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
        extra: &extra,
    })
}

pub(crate) fn proposed(proposed: &native::Move) -> consolidation::Move<'_> {
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
        remove,
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
        labels,
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

pub(crate) fn with_pools<R>(
    pools: &[native::BudgetPool],
    ask: impl FnOnce(&[budgets::Pool<'_>]) -> R,
) -> R {
    let parts: Vec<_> = pools
        .iter()
        .map(|it| {
            let labels = it.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let declared = it.declared.iter().map(declared_budget);
            (labels.collect::<Vec<_>>(), declared.collect::<Vec<_>>())
        })
        .collect();
    let pools: Vec<budgets::Pool<'_>> = pools
        .iter()
        .zip(&parts)
        .map(|(it, (labels, declared))| pool(it, labels, declared))
        .collect();
    ask(&pools)
}

fn pool<'a>(
    pool: &'a native::BudgetPool,
    labels: &'a [(&'a str, &'a str)],
    declared: &'a [budgets::DeclaredBudget<'a>],
) -> budgets::Pool<'a> {
    let native::BudgetPool {
        name,
        labels: _,
        total,
        not_ready,
        deleting,
        disrupting,
        pending_pods,
        declared: _,
        recent_hour,
        recent_day,
    } = pool;
    budgets::Pool {
        name,
        labels,
        total: *total,
        not_ready: *not_ready,
        deleting: *deleting,
        disrupting,
        pending_pods: *pending_pods,
        declared,
        recent_hour: *recent_hour,
        recent_day: *recent_day,
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
