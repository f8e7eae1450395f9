//! Between the hooks' own types and those of the interface. Nothing is copied but what comes back, nothing is
//! judged.
//!
//! A question borrows the columns of its round, and wasmtime copies them into the guest from where they are.
//! What must be made for it (lists of references) lives on the stack of a `with_` function. Tables that a policy does
//! not need are given to it empty.

use hooks::disruption as native;
use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable,
    PodsSummary, Stage, UsageTable, WorkloadTable,
};

use super::bindings::exports::mortise::policy::{budgets, consolidation, rank};
use super::bindings::mortise::policy::types;
use super::exchange::GivenRanking;
use crate::needs::Need;
use crate::told::Told;

pub(super) use types::{Context, Workloads};

pub(super) fn with_context<R>(told: &Told<'_>, ask: impl FnOnce(Context<'_>) -> R) -> R {
    let native::Context {
        now_seconds,
        civil,
        cluster,
        decision_id,
        seed,
    } = &*told.context;
    let calendars: Vec<Vec<&str>> = civil.iter().map(|it| texts(&it.calendars)).collect();
    let times = civil.iter().zip(&calendars);
    let civil: Vec<types::Civil<'_>> = times.map(|(it, names)| civil_time(it, names)).collect();
    ask(Context {
        now: *now_seconds,
        civil: &civil,
        cluster,
        decision_id,
        seed: *seed,
        memory: told.memory,
        extra: &[],
    })
}

pub(super) fn texts(owned: &[String]) -> Vec<&str> {
    owned.iter().map(String::as_str).collect()
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
pub(super) fn with_offerings<R>(
    told: &Told<'_>,
    table: &OfferingTable,
    prior: &[f64],
    ask: impl FnOnce(rank::Offerings<'_>) -> R,
) -> R {
    let OfferingTable {
        symbols,
        instance_type,
        family,
        generation,
        cpu_manufacturer,
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
        prior: _,
        extra,
    } = table;
    let symbols = texts(symbols);
    let extra: Vec<_> = extra.iter().map(extra_column).collect();
    ask(rank::Offerings {
        symbols: &symbols,
        instance_type,
        family,
        generation,
        cpu_manufacturer,
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
        interruption_rate: told.rates.as_deref().unwrap_or(interruption_rate),
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

pub(super) fn usage(table: &UsageTable) -> rank::Usage<'_> {
    let UsageTable {
        nodepool,
        instance_type,
        family,
        zone,
        capacity_type,
        nodes,
        launching,
        price,
    } = table;
    rank::Usage {
        nodepool,
        instance_type,
        family,
        zone,
        capacity_type,
        nodes,
        launching,
        price,
        extra: &[],
    }
}

pub(super) fn with_workloads<R>(
    told: &Told<'_>,
    table: &WorkloadTable,
    ask: impl FnOnce(Workloads<'_>) -> R,
) -> R {
    let none = WorkloadTable::default();
    let table = if told.needs(Need::Workloads) {
        table
    } else {
        &none
    };
    let WorkloadTable {
        of,
        namespace,
        owner_kind,
        owner_name,
        priority_class,
        priority,
        labels,
        pods,
        do_not_disrupt,
        cpu_milli,
        memory_mib,
        gpus,
        replicas,
        disruptions_allowed,
        oldest_wait,
    } = table;
    // Thousands of rows share a few keys, and none needs a list of its own.
    let asked = (0_u32..).zip(told.symbols);
    let asked = asked.filter(|(_, key)| told.workload_labels.contains(*key));
    let asked: Vec<u32> = asked.map(|(sym, _)| sym).collect();
    let mut pairs = Vec::new();
    let mut ends = vec![0];
    for own in labels {
        pairs.extend(own.iter().filter(|(key, _)| asked.contains(key)));
        ends.push(pairs.len());
    }
    let rows = ends.windows(2).map(|ends| match ends {
        [start, end] => pairs.get(*start..*end).unwrap_or_default(),
        _ => &[],
    });
    let labels: Vec<&[(u32, u32)]> = rows.collect();
    ask(Workloads {
        of,
        namespace,
        owner_kind,
        owner_name,
        priority_class,
        priority,
        labels: &labels,
        pods,
        do_not_disrupt,
        cpu_milli,
        memory_mib,
        gpus,
        replicas,
        disruptions_allowed,
        oldest_wait,
        extra: &[],
    })
}

pub(super) fn with_claims<R>(
    told: &Told<'_>,
    views: &[&ClaimView],
    ask: impl FnOnce(&[rank::Claim<'_>]) -> R,
) -> R {
    let requirements: Vec<Vec<rank::Requirement<'_>>> = views
        .iter()
        .map(|view| view.requirements.iter().map(requirement).collect())
        .collect();
    let claims: Vec<rank::Claim<'_>> = views
        .iter()
        .zip(&requirements)
        .map(|(view, requirements)| claim(told, view, requirements))
        .collect();
    ask(&claims)
}

fn claim<'a>(
    told: &Told<'_>,
    view: &'a ClaimView,
    requirements: &'a [rank::Requirement<'a>],
) -> rank::Claim<'a> {
    let ClaimView {
        nodepool,
        weight,
        stage,
        candidates,
        requirements: _,
        pods,
        labels,
        nodepool_labels,
        free_addresses,
    } = view;
    rank::Claim {
        nodepool: *nodepool,
        weight: *weight,
        stage: match stage {
            Stage::Packing => rank::Stage::Packing,
            Stage::Launch => rank::Stage::Launch,
            Stage::Appraisal => rank::Stage::Appraisal,
        },
        candidates,
        requirements,
        pods: pods_summary(pods),
        labels,
        nodepool_labels,
        free_addresses: if told.needs(Need::FreeAddresses) {
            free_addresses
        } else {
            &[]
        },
        extra: &[],
    }
}

fn pods_summary(pods: &PodsSummary) -> rank::PodsSummary<'static> {
    let PodsSummary {
        count,
        cpu_milli,
        memory_mib,
        gpus,
        max_priority,
        do_not_disrupt,
        replicated,
        oldest_wait_seconds,
    } = *pods;
    rank::PodsSummary {
        count,
        cpu_milli,
        memory_mib,
        gpus,
        max_priority,
        do_not_disrupt,
        replicated,
        oldest_wait: oldest_wait_seconds,
        extra: &[],
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
        extra: &[],
    }
}

pub(super) fn ranking(ranking: rank::Ranking) -> GivenRanking {
    let rank::Ranking {
        scores,
        excluded,
        excluded_reason,
        reasons,
        note,
        extra: _,
    } = ranking;
    GivenRanking {
        scores,
        excluded,
        excluded_reason,
        reasons,
        note,
    }
}

pub(super) fn with_nodes<R>(
    told: &Told<'_>,
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
    let labels: Vec<&[(u32, u32)]> = if told.needs(Need::NodeLabels) {
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

pub(super) fn node_pool(view: &native::PoolView) -> consolidation::Pool<'_> {
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

pub(super) fn proposed(proposed: &native::Move) -> consolidation::Move<'_> {
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

pub(super) fn verdict(verdict: consolidation::Verdict) -> native::Verdict {
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

pub(super) fn with_pools<R>(
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
    activity: &native::Activity,
) -> budgets::Activity<'static> {
    let native::Activity {
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
pub(super) fn allowance(allowance: budgets::Allowance) -> Option<native::Allowance> {
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
