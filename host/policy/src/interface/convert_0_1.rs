//! The hooks' own types as the interface 0.1 had them.
//!
//! What it had and is gone is worked out of what took its place: nodes in use of the usage table, totals of pools as
//! the extra columns of then, `replacement-spot` of the capacity type. What it could not be told then it is not told
//! now. Prices of consolidation are effective costs: a policy of then compares savings, and those that were found are
//! effective savings.

use std::collections::BTreeMap;

use hooks::disruption as native;
use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable,
    PodsSummary, RankRound, UsageTable,
};

use super::bindings::mortise::policy::host::Level;
use super::bindings_0_1::exports::mortise::policy::{budgets, consolidation, rank};
use super::bindings_0_1::mortise::policy::{host, types};
use super::convert::texts;
use super::exchange::GivenRanking;
use crate::told::Told;

/// The extra columns by which consolidation policies were told of their pools.
const CONSOLIDATION_POLICY: &str = "consolidation-policy";
const POOL_TOTAL_COST: &str = "pool-total-cost";
const POOL_TOTAL_DISRUPTION: &str = "pool-total-disruption";

pub(super) fn level(level: host::Level) -> Level {
    match level {
        host::Level::Debug => Level::Debug,
        host::Level::Info => Level::Info,
        host::Level::Warn => Level::Warn,
        host::Level::Error => Level::Error,
    }
}

pub(super) fn with_context<R>(told: &Told<'_>, ask: impl FnOnce(types::Context<'_>) -> R) -> R {
    let native::Context {
        now_seconds,
        civil,
        cluster,
        decision_id,
        seed,
    } = &*told.context;
    let calendars: Vec<Vec<&str>> = civil.iter().map(|it| texts(&it.calendars)).collect();
    let times = civil.iter().zip(&calendars);
    let civil: Vec<types::Civil<'_>> = times
        .map(|(it, names)| types::Civil {
            zone: &it.zone,
            year: it.year,
            month: it.month,
            day: it.day,
            weekday: it.weekday,
            hour: it.hour,
            minute: it.minute,
            utc_offset_minutes: it.utc_offset_minutes,
            calendars: names,
        })
        .collect();
    ask(types::Context {
        now: *now_seconds,
        civil: &civil,
        cluster,
        decision_id,
        seed: *seed,
    })
}

pub(super) fn with_offerings<R>(
    told: &Told<'_>,
    round: &RankRound,
    prior: &[f64],
    ask: impl FnOnce(rank::Offerings<'_>) -> R,
) -> R {
    let OfferingTable {
        symbols,
        instance_type,
        family,
        generation: _,
        cpu_manufacturer: _,
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
    } = &round.table;
    let symbols = texts(symbols);
    let extra: Vec<_> = extra.iter().map(extra_column).collect();
    let in_use = in_use(&round.table, &round.usage);
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
        interruption_rate: told.rates.as_deref().unwrap_or(interruption_rate),
        in_use: &in_use,
        prior,
        extra: &extra,
    })
}

/// Nodes of the cluster on each offering.
fn in_use(table: &OfferingTable, usage: &UsageTable) -> Vec<u32> {
    let mut counts: BTreeMap<(u32, u32, u8), u32> = BTreeMap::new();
    let places = usage.instance_type.iter().zip(&usage.zone);
    let places = places.zip(&usage.capacity_type).zip(&usage.nodes);
    for (((instance_type, zone), capacity_type), nodes) in places {
        let count = counts.entry((*instance_type, *zone, *capacity_type));
        let count = count.or_default();
        *count = count.saturating_add(*nodes);
    }
    let rows = table.instance_type.iter().zip(&table.zone);
    rows.zip(&table.capacity_type)
        .map(|((instance_type, zone), capacity_type)| {
            let own = counts.get(&(*instance_type, *zone, *capacity_type));
            own.copied().unwrap_or_default()
        })
        .collect()
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

pub(super) fn with_claims<R>(views: &[&ClaimView], ask: impl FnOnce(&[rank::Claim<'_>]) -> R) -> R {
    let requirements: Vec<Vec<rank::Requirement<'_>>> = views
        .iter()
        .map(|view| view.requirements.iter().map(requirement).collect())
        .collect();
    let claims: Vec<rank::Claim<'_>> = views
        .iter()
        .zip(&requirements)
        .map(|(view, requirements)| rank::Claim {
            nodepool: view.nodepool,
            weight: view.weight,
            candidates: &view.candidates,
            requirements,
            pods: pods_summary(&view.pods),
            labels: &view.labels,
        })
        .collect();
    ask(&claims)
}

fn pods_summary(pods: &PodsSummary) -> rank::PodsSummary {
    let PodsSummary {
        count,
        cpu_milli,
        memory_mib,
        gpus,
        max_priority,
        do_not_disrupt,
        replicated,
        oldest_wait_seconds: _,
    } = *pods;
    rank::PodsSummary {
        count,
        cpu_milli,
        memory_mib,
        gpus,
        max_priority,
        do_not_disrupt,
        replicated,
        // Nobody knew it then either.
        expected_runtime: 0,
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

pub(super) fn ranking(ranking: rank::Ranking) -> GivenRanking {
    let rank::Ranking {
        scores,
        excluded,
        excluded_reason,
        reasons,
        note,
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

pub(super) fn proposed<'a>(
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
    let row = remove.first().and_then(|row| usize::try_from(*row).ok());
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
        replacement_spot: *replacement_capacity_type == 1,
        recent_hour: pool.map_or(0, |it| it.recent_hour),
        recent_day: pool.map_or(0, |it| it.recent_day),
        labels,
    }
}

pub(super) fn verdict(verdict: consolidation::Verdict) -> native::Verdict {
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
struct PoolParts<'a> {
    labels: Vec<(&'a str, &'a str)>,
    declared: Vec<budgets::DeclaredBudget<'a>>,
    disrupting: [u32; 3],
}

pub(super) fn with_pools<R>(
    pools: &[native::BudgetPool],
    ask: impl FnOnce(&[budgets::Pool<'_>]) -> R,
) -> R {
    let parts: Vec<PoolParts<'_>> = pools
        .iter()
        .map(|it| {
            let labels = it.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            let disrupting = |reason: native::BudgetReason| {
                let own = it.activity.get(reason.index());
                own.map_or(0, |own| own.disrupting)
            };
            PoolParts {
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

fn pool<'a>(pool: &'a native::BudgetPool, parts: &'a PoolParts<'a>) -> budgets::Pool<'a> {
    let sum = |count: fn(&native::Activity) -> u32| {
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

pub(super) fn allowance(allowance: budgets::Allowance) -> native::Allowance {
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
