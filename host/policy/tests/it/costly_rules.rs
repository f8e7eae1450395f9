//! Rules made to cost much: whatever is written in a ConfigMap, it is checked in milliseconds and megabytes, and what
//! a live rule may take is counted, so that it ends at the same row on every machine.

use std::fs;
use std::process::Command;
use std::time::Duration;

use policy::{BindingSource, BindingState, Limits, PolicyHost};
use scheduling::ranking::RankHook;

use crate::rules::rule;
use crate::support::{host, round};
use cases::{Costly, costly, list};

mod cases;

/// What a check may take of memory.
const CHECK_BYTES_MAX: u64 = 16 << 20;
/// A check without a bound takes longer than this; what one takes is for `cargo bench -p policy --bench checks`.
const WITHOUT_END: Duration = Duration::from_secs(2);
/// The name of this test's own variable for the process that is measured.
const MEASURED: &str = "MORTISE_TEST_COSTLY_RULE";

fn ranking(key: &str, text: &str) -> BindingSource {
    let mut source = rule("rank", &[("rule", "price")]);
    source.data.insert(key.to_owned(), text.to_owned());
    source
}

fn source(costly: &Costly) -> BindingSource {
    let mut source = rule("rank", &[]);
    source.data.extend(costly.data.clone());
    source
}

#[test]
fn what_a_rule_costs_is_bounded_when_it_is_checked() {
    let host = host();
    for costly in costly() {
        let Costly { name, words, .. } = costly;
        let started = at_work();
        let status = host.apply(&source(&costly));
        let took = at_work().saturating_sub(started);
        let state = if words.is_empty() {
            BindingState::Ready
        } else {
            BindingState::Degraded
        };
        assert_eq!(status.state, state, "{name}: {status:?}");
        assert!(status.message.contains(words), "{name}: {}", status.message);
        assert!(took < WITHOUT_END, "{name}: {took:?}");
        assert_eq!(host.rank(&round()).rankings.len(), 2, "{name}");
    }
}

/// Time that this thread was at work; what the machine gave to others does not count.
fn at_work() -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = statistics.split_whitespace().next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

/// Bytes of this process that `/proc/self/status` tells under a name.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with(name)).unwrap();
    let kibibytes = line.split_whitespace().nth(1).unwrap();
    kibibytes.parse::<u64>().unwrap() << 10
}

#[test]
fn what_a_rule_keeps_in_memory_is_bounded_when_it_is_checked() {
    // Each in a process of its own, where nothing else is measured.
    let Ok(measured) = std::env::var(MEASURED) else {
        let test = "costly_rules::what_a_rule_keeps_in_memory_is_bounded_when_it_is_checked";
        for Costly { name, .. } in costly() {
            let output = Command::new(std::env::current_exe().unwrap())
                .args([test, "--exact"])
                .env(MEASURED, name)
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && text.contains("1 passed"),
                "{name}: {text}"
            );
        }
        return;
    };
    let host = PolicyHost::on_demand(Limits::default()).unwrap();
    let harmless = rule(
        "rank",
        &[("rule", "zone.matches(\"a\") ? price : price * 2")],
    );
    host.apply(&harmless);
    let costly = costly().into_iter().find(|it| it.name == measured);
    let source = source(&costly.unwrap());
    // The highest from here on.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    host.apply(&source);
    let took = memory("VmHWM").saturating_sub(before);
    assert!(took < CHECK_BYTES_MAX, "{measured} took {took} bytes");
}

#[test]
fn a_rule_that_behaves_while_it_is_tried_is_stopped_by_the_count() {
    // Questions of loading come from NodePools of another name.
    let text = "nodepool == \"web\" ? size([1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, \
                [1,2,3,4,5,6,7,8,9].map(c, a + b + c)))) : price";
    let host = host();
    let status = host.apply(&ranking("rule", text));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let answer = host.rank(&round());
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11]);
    assert!(
        answer.uses[0]
            .outcome
            .as_str()
            .starts_with("OutOfFuel: the rule takes more than 2000 steps"),
        "{:?}",
        answer.uses
    );
}

#[test]
fn a_round_of_many_rows_ends_by_the_count_of_the_call() {
    let host = host();
    let text = format!("{}.map(a, a * 2 + a * 3).sum() + price", list(90));
    let status = host.apply(&ranking("rule", &text));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let mut large = round();
    for _ in 0..13 {
        let table = &mut large.table;
        for column in [
            &mut table.price,
            &mut table.prior,
            &mut table.on_demand_price,
            &mut table.interruption_rate,
        ] {
            column.extend_from_within(..);
        }
        for column in [
            &mut table.instance_type,
            &mut table.family,
            &mut table.zone,
            &mut table.arch,
            &mut table.cpu_milli,
            &mut table.memory_mib,
            &mut table.gpus,
            &mut table.max_pods,
            &mut table.reservation_slots,
            &mut table.ice_count,
            &mut table.ice_age,
            &mut table.generation,
            &mut table.cpu_manufacturer,
        ] {
            column.extend_from_within(..);
        }
        table.capacity_type.extend_from_within(..);
    }
    let fuel = Limits::default().rank.fuel;
    let answer = host.rank(&large);
    let outcome = answer.uses[0].outcome.as_str();
    assert!(
        outcome.starts_with("OutOfFuel: ran out of fuel after"),
        "{outcome}"
    );
    let spent = host
        .statistics()
        .into_iter()
        .find(|it| it.name == "mine")
        .unwrap()
        .fuel;
    assert!(spent <= fuel && spent > fuel / 2, "{spent} of {fuel}");
}
