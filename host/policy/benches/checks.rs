//! What checking a rule costs that was written to be costly, beside what it may take; `cargo bench -p policy --bench
//! checks`.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "it is a tool for a terminal"
)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cases::{Costly, costly};
use policy::{BindingSource, Limits, PolicyHost};

#[path = "../tests/it/costly_rules/cases.rs"]
mod cases;

const CHECK_TIME_MAX: Duration = Duration::from_millis(10);
const CHECKS: u32 = 20;

fn main() {
    let host = PolicyHost::on_demand(Limits::default()).expect("the engine starts");
    let micros = |took: Duration| took.as_secs_f64() * 1e6;
    let limit = micros(CHECK_TIME_MAX);
    println!("{:<44}{:>12}{:>14}", "", "now", "may take");
    for Costly { name, data, words } in costly() {
        let source = BindingSource {
            namespace: "mortise".to_owned(),
            name: "measured".to_owned(),
            labels: BTreeMap::from([("mortise.dev/policy".to_owned(), "rank".to_owned())]),
            data,
            ..BindingSource::default()
        };
        let check = || {
            let started = Instant::now();
            let status = black_box(host.apply(&source));
            assert!(status.message.contains(words), "{name}: {status:?}");
            started.elapsed()
        };
        let took = (0..CHECKS).map(|_| check()).min().unwrap_or_default();
        println!("{name:<44}{:>9.1} us{limit:>11.1} us", micros(took));
    }
}
