//! The hooks' own types as the interface 0.1 had them.
//!
//! What it had and is gone is worked out of what took its place: nodes in use of the usage table, totals of pools as
//! the extra columns of then, `replacement-spot` of the capacity type. What it could not be told then it is not told
//! now. Prices of consolidation are effective costs: a policy of then compares savings, and those that were found are
//! effective savings.

mod disruption;

use std::collections::BTreeMap;

use hooks::disruption as native;
use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable,
    PodsSummary, RankRound, UsageTable,
};

use super::bindings::mortise::policy::host::Level;
use super::bindings_0_1::exports::mortise::policy::rank;
use super::bindings_0_1::mortise::policy::{host, types};
use super::convert::texts;
use super::exchange::GivenRanking;
use crate::call_context::CallContext;

pub(super) use disruption::{allowance, proposed, verdict, with_nodes, with_pools};

pub(super) fn level(level: host::Level) -> Level {
    match level {
        host::Level::Debug => Level::Debug,
        host::Level::Info => Level::Info,
        host::Level::Warn => Level::Warn,
        host::Level::Error => Level::Error,
    }
}

pub(super) fn with_context<R>(
    call: &CallContext<'_>,
    ask: impl FnOnce(types::Context<'_>) -> R,
) -> R {
    let native::Context {
        now_seconds,
        civil,
        cluster,
        decision_id,
        seed,
    } = &*call.context;
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
    call: &CallContext<'_>,
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
        interruption_rate: call.rates.as_deref().unwrap_or(interruption_rate),
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
