//! Between the hooks' own types and those of the interface. Nothing is copied but what comes back, nothing is
//! judged.
//!
//! A question borrows the columns of its round, and wasmtime copies them into the guest from where they are.
//! What must be made for it (lists of references) lives on the stack of a `with_` function. Tables that a policy does
//! not need are given to it empty.

mod disruption;

use hooks::disruption as native;
use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable,
    PodsSummary, RankStage, UsageTable, WorkloadTable,
};

use super::bindings::exports::mortise::policy::rank;
use super::bindings::mortise::policy::types;
use super::exchange::GivenRanking;
use crate::call_context::CallContext;
use crate::needs::Need;

pub(super) use disruption::{allowance, node_pool, proposed, verdict, with_nodes, with_pools};
pub(super) use types::{Context, Workloads};

pub(super) fn with_context<R>(call: &CallContext<'_>, ask: impl FnOnce(Context<'_>) -> R) -> R {
    let native::Context {
        now_seconds,
        civil,
        cluster,
        decision_id,
        seed,
    } = &*call.context;
    let calendars: Vec<Vec<&str>> = civil.iter().map(|it| texts(&it.calendars)).collect();
    let times = civil.iter().zip(&calendars);
    let civil: Vec<types::Civil<'_>> = times.map(|(it, names)| civil_time(it, names)).collect();
    ask(Context {
        now: *now_seconds,
        civil: &civil,
        cluster,
        decision_id,
        seed: *seed,
        memory: call.memory,
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
    call: &CallContext<'_>,
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
        interruption_rate: call.rates.as_deref().unwrap_or(interruption_rate),
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
    call: &CallContext<'_>,
    table: &WorkloadTable,
    ask: impl FnOnce(Workloads<'_>) -> R,
) -> R {
    let none = WorkloadTable::default();
    let table = if call.needs(Need::Workloads) {
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
    let asked = (0_u32..).zip(call.symbols);
    let asked = asked.filter(|(_, key)| call.workload_labels.contains(*key));
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
    call: &CallContext<'_>,
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
        .map(|(view, requirements)| claim(call, view, requirements))
        .collect();
    ask(&claims)
}

fn claim<'a>(
    call: &CallContext<'_>,
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
            RankStage::Packing => rank::Stage::Packing,
            RankStage::Launch => rank::Stage::Launch,
            RankStage::Appraisal => rank::Stage::Appraisal,
        },
        candidates,
        requirements,
        pods: pods_summary(pods),
        labels,
        nodepool_labels,
        free_addresses: if call.needs(Need::FreeAddresses) {
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
