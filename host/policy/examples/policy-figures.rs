//! Prints what policies cost on this machine: start-up, loading, and calls as a round makes them (fresh
//! instance, configuration, conversion of the table, answer checked).
//!
//! `cargo run --release -p policy --example policy-figures`

#![expect(clippy::print_stdout, reason = "it is a tool for a terminal")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use policy::{BUILTINS, BindingSource, Limits, PolicyHost};
use scheduling::ranking::{ClaimView, OfferingTable, PriceRank, RankHook, RankRound};

fn main() -> Result<(), policy::StartError> {
    for builtin in BUILTINS {
        println!("{:<24}{:>8} bytes", builtin.name, builtin.component().len());
    }
    let started = Instant::now();
    let host = PolicyHost::new(Limits::default())?;
    println!(
        "start, defaults compiling behind it: {:?}",
        started.elapsed()
    );
    host.warm_up();
    println!(
        "start, defaults compiled:            {:?}",
        started.elapsed()
    );
    for rows in [60, 400, 6000] {
        let native = round(rows, 1);
        let one = median(|| host.rank(&native));
        let many = round(rows, 20);
        let twenty = median(|| host.rank(&many));
        let floor = median(|| PriceRank.rank(&native));
        println!("{rows:>5} rows: 1 claim {one:?}, 20 claims {twenty:?} (native {floor:?})");
    }
    let started = Instant::now();
    let status = host.apply(&BindingSource {
        namespace: "mortise".to_owned(),
        name: "graviton-first".to_owned(),
        labels: BTreeMap::from([("mortise.dev/policy".to_owned(), "rank".to_owned())]),
        data: BTreeMap::from([("builtin".to_owned(), "prefer-arm64".to_owned())]),
        ..BindingSource::default()
    });
    println!(
        "binding prefer-arm64: {:?}, {:?} {}",
        started.elapsed(),
        status.state,
        status.message
    );
    let four_hundred = round(400, 1);
    println!("  400 rows: {:?}", median(|| host.rank(&four_hundred)));
    for it in host.statistics() {
        println!(
            "{:<16}{:<20}{:>8} calls  p50 {} us",
            it.kind, it.name, it.calls, it.microseconds_p50
        );
    }
    Ok(())
}

fn median<T>(mut work: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..301)
        .map(|_| {
            let started = Instant::now();
            std::hint::black_box(work());
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(150).copied().unwrap_or_default()
}

/// A table of six zones and ten offerings a type; every claim after the first is for a tenth of it.
fn round(rows: u32, claims: u32) -> RankRound {
    let zones = ["a", "b", "c", "d", "e", "f"].map(|zone| format!("us-east-1{zone}"));
    let mut symbols: Vec<String> = ["default", "amd64", "arm64"].map(str::to_owned).to_vec();
    symbols.extend(zones);
    let types = rows.div_ceil(10);
    symbols.extend((0..types).map(|it| format!("m{}g.{it}xlarge", it % 9)));
    let column = |value: fn(u32) -> u32| (0..rows).map(value).collect::<Vec<u32>>();
    let price: Vec<f64> = (0..rows)
        .map(|it| f64::from(it.wrapping_mul(2_654_435_761).rotate_left(13) % 100_000) / 1e4)
        .collect();
    let table = OfferingTable {
        symbols,
        instance_type: column(|it| 9 + it / 10),
        family: column(|it| 9 + it / 10),
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
        in_use: column(|_| 0),
        prior: price.clone(),
        price,
        extra: Vec::new(),
    };
    let claim = |index: u32| ClaimView {
        weight: 1,
        candidates: if claims == 1 {
            Vec::new()
        } else {
            (0..rows)
                .filter(|row| (row + index).is_multiple_of(10))
                .collect()
        },
        ..ClaimView::default()
    };
    RankRound {
        now_seconds: 1_767_614_400,
        cluster: "figures".to_owned(),
        decision_id: "figures".to_owned(),
        seed: 1,
        claims: (0..claims).map(claim).collect(),
        table,
    }
}
