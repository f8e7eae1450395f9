//! What calls of policies cost, beside what the design aims at: a call as a round makes it (fresh instance,
//! configuration, question written, answer checked), a further call in the same instance, and a whole round of
//! a large solve.
//!
//! `cargo bench -p policy`, or `-- round` for one group. Medians of the same figures: `mortise policy bench`.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "it is a tool for a terminal"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion};
use policy::{BindingSource, BindingState, Limits, ObjectKey, PolicyHost, PolicyKind};
use scheduling::ranking::{
    ClaimView, OfferingTable, PriceRank, RankHook, RankRound, UsageTable, WorkloadTable,
};

/// Rows, and microseconds: warm as measured before there was a controller around it, fresh as measured and as
/// aimed at.
const GOALS: [(u32, f64, f64, f64); 3] = [
    (60, 4.7, 30.0, 30.0),
    (400, 9.6, 50.0, 50.0),
    (6_000, 88.0, 399.0, 400.0),
];
/// What a round of so many rows and claims may add to a solve.
const LARGE_ROUND: (u32, u32, Duration) = (6_000, 20, Duration::from_millis(1));

fn main() {
    let started = Instant::now();
    let host = PolicyHost::new(Limits::default()).expect("the engine starts");
    println!(
        "start, defaults compiling behind it: {:?}",
        started.elapsed()
    );
    host.warm_up();
    println!("start, defaults compiled: {:?}", started.elapsed());
    // Bound by name, the default is a policy like others: its last answer is not kept.
    let bound = bound("default-rank");
    let everything = bound_to_be_told_everything();
    table(&host, &bound, &everything);
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("call");
    for (rows, ..) in GOALS {
        let round = round(rows, 1, All::Rows);
        group.bench_function(BenchmarkId::from_parameter(rows), |it| {
            it.iter(|| black_box(bound.rank(&round)));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("round");
    let (rows, claims, _) = LARGE_ROUND;
    for (name, candidates) in [("tenths", All::Tenths), ("all", All::Rows)] {
        let round = round(rows, claims, candidates);
        group.bench_function(BenchmarkId::new("bound", name), |it| {
            it.iter(|| black_box(bound.rank(&round)));
        });
        group.bench_function(BenchmarkId::new("unchanged", name), |it| {
            it.iter(|| black_box(host.rank(&round)));
        });
        group.bench_function(BenchmarkId::new("everything", name), |it| {
            it.iter(|| black_box(everything.rank(&round)));
        });
    }
    group.finish();
    criterion.final_summary();
}

fn table(host: &PolicyHost, bound: &PolicyHost, everything: &PolicyHost) {
    let shelf = bound_of_the_shelf();
    println!(
        "{:<44}{:>12}{:>18}{:>10}",
        "", "now", "measured before", "goal"
    );
    let line = |what: &str, now: Duration, before: Option<f64>, goal: f64| {
        let before = before.map_or_else(|| "-".to_owned(), |it| format!("{it:.1} us"));
        let micros = now.as_secs_f64() * 1e6;
        println!("{what:<44}{micros:>9.1} us{before:>18}{goal:>7.1} us");
    };
    for (rows, warm_before, fresh_before, fresh_goal) in GOALS {
        let measured = host
            .measure_default(PolicyKind::Rank, rows)
            .expect("there is a default")
            .expect("it answers");
        let what = format!("rank, {rows} rows, warm");
        line(&what, measured.warm, Some(warm_before), warm_before);
        let what = format!("rank, {rows} rows, fresh and configured");
        line(&what, measured.fresh, Some(fresh_before), fresh_goal);
    }
    let (rows, claims, limit) = LARGE_ROUND;
    let goal = limit.as_secs_f64() * 1e6;
    for (name, candidates) in [
        ("a tenth of the rows", All::Tenths),
        ("all rows", All::Rows),
    ] {
        let round = round(rows, claims, candidates);
        let native = median(|| PriceRank.rank(&round));
        let added = |policy: &str, host: &PolicyHost| {
            let took = median(|| host.rank(&round)).saturating_sub(native);
            let what = format!("{policy}, {claims} claims for {name}");
            line(&what, took, None, goal);
        };
        added("unchanged", host);
        added("default-rank", bound);
        added("everything", everything);
        for (name, host) in &shelf {
            added(name, host);
        }
    }
}

fn median<T>(mut work: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..101)
        .map(|_| {
            let started = Instant::now();
            black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(50).copied().unwrap_or_default()
}

fn bound(builtin: &str) -> PolicyHost {
    let mut source = binding();
    source.data.insert("builtin".to_owned(), builtin.to_owned());
    applied(builtin, &source)
}

/// The tests' guest that needs all that a policy may ask for, with all that a binding may tell it.
fn bound_to_be_told_everything() -> PolicyHost {
    let mut source = binding();
    let component = include_bytes!("../tests/guests/everything.wasm").to_vec();
    let binary = &mut source.binary_data;
    binary.insert("policy.wasm".to_owned(), component);
    let labels = ("mortise.dev/workload-labels".to_owned(), "team".to_owned());
    source.annotations.extend([labels]);
    let zones = ("time-zones".to_owned(), "Europe/Berlin".to_owned());
    source.data.extend([zones]);
    applied("everything", &source)
}

fn binding() -> BindingSource {
    BindingSource {
        namespace: "mortise".to_owned(),
        name: "measured".to_owned(),
        labels: BTreeMap::from([("mortise.dev/policy".to_owned(), "rank".to_owned())]),
        ..BindingSource::default()
    }
}

fn applied(name: &str, source: &BindingSource) -> PolicyHost {
    let host = PolicyHost::on_demand(Limits::default()).expect("the engine starts");
    let started = Instant::now();
    let status = host.apply(source);
    println!("binding {name}: {:?}", started.elapsed());
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    assert!(host.status(&key()).is_some());
    host
}

fn key() -> ObjectKey {
    ObjectKey {
        namespace: "mortise".to_owned(),
        name: "measured".to_owned(),
    }
}

/// All that rank.
fn bound_of_the_shelf() -> [(&'static str, PolicyHost); 8] {
    [
        "prefer-arm64",
        "perf-price",
        "ordered",
        "node-overhead",
        "zone-balance",
        "spot-risk",
        "commit-ledger",
        "prefer-return",
    ]
    .map(|name| (name, bound(name)))
}

#[derive(Clone, Copy)]
enum All {
    Rows,
    Tenths,
}

/// Ten offerings a type in six zones.
fn round(rows: u32, claims: u32, candidates: All) -> RankRound {
    let mut symbols: Vec<String> = ["default", "amd64", "arm64"].map(str::to_owned).to_vec();
    symbols.extend(["a", "b", "c", "d", "e", "f"].map(|zone| format!("us-east-1{zone}")));
    symbols.extend((0..rows.div_ceil(10)).map(|it| format!("m{}g.{it}xlarge", it % 9)));
    let workloads = workloads(claims, &mut symbols);
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let price: Vec<f64> = (0..rows)
        .map(|it| f64::from(it.wrapping_mul(2_654_435_761).rotate_left(13) % 100_000) / 1e4)
        .collect();
    let table = OfferingTable {
        symbols,
        instance_type: column(|it| 9 + it / 10),
        family: column(|it| 9 + it / 10),
        generation: column(|it| it / 10 % 9),
        cpu_manufacturer: column(|it| 1 + it / 10 % 2),
        zone: column(|it| 3 + it % 6),
        arch: column(|it| 1 + it % 2),
        capacity_type: (0..rows).map(|it| u8::from(it % 2 == 1)).collect(),
        on_demand_price: price.clone(),
        cpu_milli: column(|it| it % 64 * 1000),
        memory_mib: column(|it| it % 512 * 1024),
        gpus: column(|_| 0),
        max_pods: column(|_| 110),
        reservation_slots: column(|_| 0),
        ice_count: column(|it| u32::from(it % 17 == 0)),
        ice_age: column(|it| it * 7 % 4000),
        interruption_rate: price.iter().map(|price| price / 100.0).collect(),
        prior: price.clone(),
        price,
        extra: Vec::new(),
    };
    let claim = |index: u32| ClaimView {
        weight: 1,
        candidates: match candidates {
            All::Rows => Vec::new(),
            All::Tenths => (0..rows)
                .filter(|row| (row + index).is_multiple_of(10))
                .collect(),
        },
        labels: vec![(0, 0); 4],
        nodepool_labels: vec![(0, 0); 4],
        free_addresses: (3..9).map(|zone| (zone, 200)).collect(),
        ..ClaimView::default()
    };
    RankRound {
        now_seconds: 1_767_614_400,
        cluster: "figures".to_owned(),
        decision_id: "figures".to_owned(),
        seed: 1,
        claims: (0..claims).map(claim).collect(),
        usage: usage(&table),
        workloads,
        table,
    }
}

/// Nodes on every twentieth offering.
fn usage(table: &OfferingTable) -> UsageTable {
    let every = |column: &[u32]| column.iter().copied().step_by(20).collect::<Vec<u32>>();
    let instance_type = every(&table.instance_type);
    let rows = instance_type.len();
    UsageTable {
        nodepool: vec![0; rows],
        family: every(&table.family),
        zone: every(&table.zone),
        capacity_type: table.capacity_type.iter().copied().step_by(20).collect(),
        nodes: vec![3; rows],
        launching: vec![1; rows],
        price: vec![0.1; rows],
        instance_type,
    }
}

/// Ten Deployments for each claim, with the two labels that charts give them.
fn workloads(claims: u32, symbols: &mut Vec<String>) -> WorkloadTable {
    let first = u32::try_from(symbols.len()).expect("there are few words");
    let words = [
        "team",
        "payments",
        "app",
        "web",
        "Deployment",
        "shop",
        "normal",
    ];
    symbols.extend(words.map(str::to_owned));
    let deployments = claims * 10;
    symbols.extend((0..deployments).map(|it| format!("deployment-{it}")));
    let rows = || 0..deployments;
    let each = |value: u32| rows().map(|_| value).collect::<Vec<u32>>();
    WorkloadTable {
        of: rows().map(|it| it / 10).collect(),
        namespace: each(first + 5),
        owner_kind: each(first + 4),
        owner_name: rows().map(|it| first + 7 + it).collect(),
        priority_class: each(first + 6),
        priority: rows().map(|_| 0).collect(),
        labels: rows()
            .map(|_| vec![(first, first + 1), (first + 2, first + 3)])
            .collect(),
        pods: each(12),
        do_not_disrupt: each(1),
        cpu_milli: each(6_000),
        memory_mib: each(24_576),
        gpus: each(0),
        replicas: each(24),
        disruptions_allowed: each(2),
        oldest_wait: each(30),
    }
}
