//! Every field of every record that the interface hands to a policy arrives there with what the round holds.
//!
//! The interface itself says which fields there are, so that one which nobody writes fails here. The guest repeats what
//! it is told in its log.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use hooks::disruption as native;
use hooks::disruption::{BudgetsHook, ConsolidationHook};
use policy::{BindingSource, BindingState, PolicyHost};
use scheduling::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, OfferingTable,
    PodsSummary, RankHook, RankRound, RankStage, UsageTable, WorkloadTable,
};
use wit_parser::{Resolve, Type, TypeDefKind, TypeId};

use crate::support::{annotated, host, module};

/// Half past one of Tuesday 2026-01-06 in UTC, so that no part of it is nothing.
const NOW_SECONDS: u64 = 1_767_706_200;
/// Symbol 1: a word other than the first, so that no symbol is nothing.
const WORD: u32 = 1;

pub(crate) fn repeating() -> Vec<u8> {
    fs::read("tests/guests/everything.wasm").unwrap()
}

/// A binding of the guest that asks for everything, with all that a binding may tell.
pub(crate) fn telling(kind: &str) -> BindingSource {
    let mut source = annotated(
        module("everything", kind, repeating()),
        "workload-labels",
        "word",
    );
    let facts = [
        ("time-zones", "Asia/Kolkata"),
        ("calendars", "freeze: [2026-01-05, 2026-01-06]"),
    ];
    for (key, text) in facts {
        source.data.insert(key.to_owned(), text.to_owned());
    }
    source
}

fn words() -> Vec<String> {
    ["", "word"].map(str::to_owned).to_vec()
}

fn workloads() -> WorkloadTable {
    WorkloadTable {
        of: vec![1],
        namespace: vec![WORD],
        owner_kind: vec![WORD],
        owner_name: vec![WORD],
        priority_class: vec![WORD],
        priority: vec![5],
        labels: vec![vec![(WORD, WORD)]],
        pods: vec![3],
        do_not_disrupt: vec![1],
        cpu_milli: vec![250],
        memory_mib: vec![512],
        gpus: vec![2],
        replicas: vec![9],
        disruptions_allowed: vec![4],
        oldest_wait: vec![60],
    }
}

fn extra() -> Vec<ExtraColumn> {
    vec![ExtraColumn {
        name: "extra".to_owned(),
        values: ExtraValues::Ints(vec![6]),
    }]
}

fn rank_round() -> RankRound {
    let table = OfferingTable {
        symbols: words(),
        instance_type: vec![WORD],
        family: vec![WORD],
        generation: vec![7],
        cpu_manufacturer: vec![WORD],
        zone: vec![WORD],
        arch: vec![WORD],
        capacity_type: vec![1],
        price: vec![0.5],
        on_demand_price: vec![0.75],
        cpu_milli: vec![2000],
        memory_mib: vec![4096],
        gpus: vec![1],
        max_pods: vec![29],
        reservation_slots: vec![3],
        ice_count: vec![2],
        ice_age: vec![30],
        interruption_rate: vec![0.125],
        prior: vec![0.25],
        extra: extra(),
    };
    let claim = ClaimView {
        nodepool: WORD,
        weight: 10,
        stage: RankStage::Packing,
        candidates: vec![0],
        requirements: vec![ClaimRequirement {
            key: WORD,
            operator: ClaimOperator::NotIn,
            values: vec![WORD],
            min_values: 2,
        }],
        pods: PodsSummary {
            count: 3,
            cpu_milli: 100,
            memory_mib: 200,
            gpus: 1,
            max_priority: -4,
            do_not_disrupt: 1,
            replicated: 2,
            oldest_wait_seconds: 15,
        },
        labels: vec![(WORD, WORD)],
        nodepool_labels: vec![(WORD, WORD)],
        free_addresses: vec![(WORD, 250)],
    };
    RankRound {
        now_seconds: NOW_SECONDS,
        cluster: "repeat".to_owned(),
        decision_id: "rank-1".to_owned(),
        seed: 11,
        table,
        usage: UsageTable {
            nodepool: vec![WORD],
            instance_type: vec![WORD],
            family: vec![WORD],
            zone: vec![WORD],
            capacity_type: vec![2],
            nodes: vec![4],
            launching: vec![1],
            price: vec![0.5],
        },
        workloads: workloads(),
        claims: vec![claim],
    }
}

pub(crate) fn context() -> native::Context {
    native::Context {
        now_seconds: NOW_SECONDS,
        civil: Vec::new(),
        cluster: "repeat".to_owned(),
        decision_id: "it-1".to_owned(),
        seed: 11,
    }
}

fn consolidation_round() -> native::ConsolidationRound {
    native::ConsolidationRound {
        context: context(),
        nodes: native::NodeTable {
            symbols: words(),
            name: vec![WORD],
            nodepool: vec![WORD],
            instance_type: vec![WORD],
            zone: vec![WORD],
            capacity_type: vec![1],
            price: vec![0.5],
            effective_price: vec![0.75],
            consolidation_policy: vec![WORD],
            age: vec![100],
            time_to_expiry: vec![200],
            last_pod_event: vec![300],
            drift_reason: vec![WORD],
            pods: vec![3],
            blocked_pods: vec![1],
            disruption_cost: vec![2.5],
            cpu_milli: vec![4000],
            cpu_requested_milli: vec![1000],
            memory_mib: vec![8192],
            memory_requested_mib: vec![2048],
            gpus: vec![2],
            gpus_requested: vec![1],
            labels: vec![vec![(WORD, WORD)]],
            extra: extra(),
        },
        pools: vec![native::PoolView {
            name: WORD,
            labels: vec![(WORD, WORD)],
            nodes: 5,
            price: 2.5,
            effective_price: 3.5,
            disruption_cost: 12.5,
            recent_hour: 1,
            recent_day: 2,
        }],
        workloads: workloads(),
    }
}

fn proposed() -> native::Move {
    native::Move {
        kind: native::MoveKind::Replace,
        remove: vec![0],
        cost_before: 0.5,
        cost_after: 0.25,
        effective_before: 0.75,
        effective_after: 0.125,
        pods_moved: 3,
        singletons_moved: 1,
        max_priority: -4,
        new_nodes: 1,
        replacement_type: WORD,
        replacement_zone: WORD,
        replacement_capacity_type: 1,
        labels: vec![(WORD, WORD)],
    }
}

fn budget_round() -> native::BudgetRound {
    let activity = native::PoolActivity {
        disrupting: 1,
        recent_hour: 2,
        recent_day: 3,
        failed_day: 4,
    };
    native::BudgetRound {
        context: context(),
        pools: vec![native::BudgetPool {
            name: "web".to_owned(),
            labels: vec![("team".to_owned(), "shop".to_owned())],
            total: 9,
            not_ready: 1,
            deleting: 2,
            drifted: 3,
            drift_target: "abc".to_owned(),
            renewed: 4,
            target_age_seconds: 60,
            price: 1.5,
            activity: [activity; 4],
            pending_pods: 5,
            declared: vec![native::DeclaredBudget {
                nodes: "10%".to_owned(),
                resolved: 1,
                active: true,
                next_change_seconds: 30,
                reasons: native::BudgetReasons::ALL,
            }],
        }],
    }
}

/// What the guest logged of its last call, which is the second of its kind, so that there is a memory.
fn repeated(host: &PolicyHost, ask: impl Fn(&PolicyHost)) -> String {
    ask(host);
    host.drain_records();
    ask(host);
    let records = host.drain_records();
    let record = records.iter().find(|it| it.name == "everything").unwrap();
    assert_eq!(record.outcome.as_str(), "ok");
    record.log.join("\n")
}

/// The text of one kind of call.
fn told(kind: &str) -> String {
    let host = host();
    let status = host.apply(&telling(kind));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    match kind {
        "rank" => repeated(&host, |host| drop(host.rank(&rank_round()))),
        "consolidation" => repeated(&host, |host| {
            drop(host.judge(&consolidation_round(), &[proposed()]));
        }),
        _ => repeated(&host, |host| drop(host.allow(&budget_round()))),
    }
}

/// Records that an interface's functions are given, by name, with their fields.
fn given(resolve: &Resolve, interface: &str) -> BTreeMap<String, Vec<String>> {
    let mut interfaces = resolve.interfaces.iter().map(|(_, it)| it);
    let interface = interfaces
        .find(|it| it.name.as_deref() == Some(interface))
        .unwrap();
    let mut records = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for function in interface.functions.values() {
        for param in &function.params {
            collect(resolve, &param.ty, &mut seen, &mut records);
        }
    }
    records
}

fn collect(
    resolve: &Resolve,
    of: &Type,
    seen: &mut BTreeSet<TypeId>,
    records: &mut BTreeMap<String, Vec<String>>,
) {
    let Type::Id(id) = of else { return };
    if !seen.insert(*id) {
        return;
    }
    let def = &resolve.types[*id];
    let mut inner = |ty: &Type| collect(resolve, ty, seen, records);
    match &def.kind {
        TypeDefKind::Record(record) => {
            let names = record.fields.iter().map(|it| it.name.clone());
            records.insert(camel(def.name.as_deref().unwrap()), names.collect());
            for field in &record.fields {
                collect(resolve, &field.ty, seen, records);
            }
        }
        TypeDefKind::List(ty) | TypeDefKind::Option(ty) | TypeDefKind::Type(ty) => inner(ty),
        TypeDefKind::Tuple(tuple) => tuple.types.iter().for_each(inner),
        _ => {}
    }
}

fn camel(kebab: &str) -> String {
    let words = kebab.split('-');
    words
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

/// The values of a field in the text that `Debug` makes of records, one for each record of the name.
fn values<'a>(text: &'a str, record: &str, field: &str) -> Vec<&'a str> {
    let head = format!("{record} {{ ");
    let starts = text.match_indices(&head);
    let records = starts.map(|(at, _)| &text[at + head.len()..]);
    records.filter_map(|it| value(it, field)).collect()
}

/// The value of a field of the record whose fields the text begins with.
fn value<'a>(mut rest: &'a str, field: &str) -> Option<&'a str> {
    loop {
        let (name, after) = rest.split_once(": ")?;
        let (value, next) = split_value(after);
        if name.trim_start_matches([',', ' ']) == field {
            return Some(value.trim());
        }
        rest = next;
        if rest.starts_with(" }") || rest.is_empty() {
            return None;
        }
    }
}

/// The value at the head of a text, and what comes after it.
fn split_value(text: &str) -> (&str, &str) {
    let (mut depth, mut is_text) = (0, false);
    for (at, it) in text.char_indices() {
        match it {
            '"' => is_text = !is_text,
            '[' | '{' | '(' if !is_text => depth += 1,
            ']' | ')' if !is_text => depth -= 1,
            '}' if !is_text && depth > 0 => depth -= 1,
            ',' | '}' if !is_text && depth == 0 => {
                let at = if it == '}' { at.saturating_sub(1) } else { at };
                return text.split_at(at);
            }
            _ => {}
        }
    }
    (text, "")
}

/// What a field holds that nobody wrote.
const NOTHING: [&str; 7] = ["0", "0.0", "[]", "\"\"", "false", "[0]", "[0.0]"];
/// Rows of a table that has one.
const ROWS: [&str; 2] = ["candidates", "remove"];
/// Growth slots of records that are not tables: empty in this version.
const EMPTY_SLOTS: usize = 10;

#[test]
fn every_field_of_the_interface_arrives_at_a_policy() {
    let mut resolve = Resolve::default();
    resolve.push_dir("../../wit").unwrap();
    let (mut checked, mut slots, mut faults) = (0, BTreeSet::new(), Vec::new());
    for kind in ["rank", "consolidation", "budgets"] {
        let text = told(kind);
        for (record, fields) in given(&resolve, kind) {
            // They are what growth slots hold.
            if ["Field", "ExtraColumn"].contains(&record.as_str()) {
                continue;
            }
            for field in fields {
                checked += 1;
                let found = values(&text, &record, &field);
                let is_written = |it: &&str| {
                    !NOTHING.contains(it) || (*it == "[0]" && ROWS.contains(&field.as_str()))
                };
                if field == "extra" && !found.is_empty() && !found.iter().any(is_written) {
                    slots.insert((kind, record.clone()));
                } else if !found.iter().any(is_written) {
                    faults.push(format!("{kind} {record}.{field}: {found:?}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(checked > 150, "only {checked} fields were found");
    assert!(slots.len() >= EMPTY_SLOTS, "{slots:?}");
    // Where the host has columns of its own to add, they arrive.
    for (kind, record) in [("rank", "Offerings"), ("consolidation", "Nodes")] {
        assert!(!slots.contains(&(kind, record.to_owned())), "{record}");
    }
}

#[test]
fn a_field_that_is_not_written_would_be_found() {
    let text = "[Offerings { symbols: [\"a, b\", \"c\"], on-demand: [0.0], pods: Pods { count: 3, extra: [] }, \
        extra: [] }, Offerings { symbols: [], on-demand: [0.5], pods: Pods { count: 0, extra: [] }, extra: [] }]";
    for (record, field, expected) in [
        ("Offerings", "symbols", &["[\"a, b\", \"c\"]", "[]"][..]),
        ("Offerings", "on-demand", &["[0.0]", "[0.5]"]),
        ("Pods", "count", &["3", "0"]),
        ("Offerings", "extra", &["[]", "[]"]),
        ("Offerings", "count", &[]),
        ("Claim", "weight", &[]),
    ] {
        assert_eq!(values(text, record, field), expected, "{record} {field}");
    }
}
