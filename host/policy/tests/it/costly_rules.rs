//! Rules made to cost much: whatever is written in a ConfigMap, it is checked in milliseconds and megabytes, and what
//! a live rule may take is counted, so that it ends at the same row on every machine.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use policy::{BindingSource, BindingState, Limits, PolicyHost};
use scheduling::ranking::RankHook;

use crate::rules::rule;
use crate::support::{host, round};

/// What a check may take.
const CHECK_BYTES_MAX: u64 = 16 << 20;
const CHECK_TIME_MAX: Duration = Duration::from_millis(10);
/// How much slower this is without an optimizer, or on a core that others share.
const SLOWER: u32 = if cfg!(debug_assertions) { 30 } else { 5 };
/// The name of this test's own variable for the process that is measured.
const MEASURED: &str = "MORTISE_TEST_COSTLY_RULE";

/// A rule, and what is said of it; nothing where it is let in, because it costs little.
struct Costly {
    name: &'static str,
    source: BindingSource,
    words: &'static str,
}

fn ranking(key: &str, text: &str) -> BindingSource {
    let mut source = rule("rank", &[("rule", "price")]);
    source.data.insert(key.to_owned(), text.to_owned());
    source
}

fn of_key(key: &str, name: &'static str, text: &str, words: &'static str) -> Costly {
    let source = ranking(key, text);
    Costly {
        name,
        source,
        words,
    }
}

fn of_rule(name: &'static str, text: &str, words: &'static str) -> Costly {
    of_key("rule", name, text, words)
}

/// The texts that a function makes of numbers, one after another.
fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().concat()
}

fn list(items: usize) -> String {
    format!("[{}]", vec!["1"; items].join(","))
}

/// `exists` in `exists`, each over a list that names the variable of the one before twice.
fn nested(first: &str, depth: usize) -> String {
    let begin = each(depth - 1, |it| {
        format!("[a{it}+a{it}].exists(a{}, ", it + 1)
    });
    let (last, end) = (depth - 1, ")".repeat(depth));
    format!("[{first}].exists(a0, {begin}a{last} == a{last}{end} ? 1 : 2")
}

fn of_lists(items: usize, depth: usize) -> String {
    let begin = each(depth, |it| format!("{}.map(x{it}, ", list(items)));
    format!("size({begin}cpu_milli{})", ")".repeat(depth))
}

const DEEP: &str = "nested deeper than 96 levels";
const STEPS: &str = "takes more than 2000 steps for one offering";

/// Trees that are deep, in each way in which the grammar lets them be.
fn deep() -> Vec<Costly> {
    let around = |open: &str, close: &str| {
        let (open, close) = (open.repeat(2000), close.repeat(2000));
        format!("{open}1{close}")
    };
    let sum = vec!["1"; 2000].join("+");
    let after = |first: &str, part: &str, count| format!("{first}{}", part.repeat(count));
    let ninety = "+1".repeat(90);
    let on_each_other = each(4, |it| format!("v{}: v{it}{ninety}\n", it + 1));
    vec![
        of_key(
            "variables",
            "variables on variables",
            &format!("v0: 1\n{on_each_other}"),
            "build on each other more than 256 levels deep",
        ),
        of_rule("a sum", &sum, DEEP),
        of_rule("fields", &after("config", ".a", 2000), DEEP),
        of_rule("keys", &after("config", "[0]", 1300), DEEP),
        of_rule("methods", &after("zone", ".trim()", 500), DEEP),
        of_rule("parentheses", &around("(", ")"), DEEP),
        of_rule("lists", &around("[", "]"), DEEP),
        of_rule("conditionals", &after("1", "==1?1:1", 500), DEEP),
        of_rule(
            "unclosed",
            &"(".repeat(90),
            "the end where a value is expected",
        ),
        // Even numbers of these are nothing at all, and odd ones are one.
        of_rule("nots", &format!("{}true ? 1 : 2", "!".repeat(4000)), ""),
        of_rule(
            "minuses",
            &format!("{}1", "-".repeat(4001)),
            "is not a finite cost",
        ),
        // Chains of these are flat.
        of_rule("ands", &format!("{}true ? 1 : 2", "true&&".repeat(600)), ""),
    ]
}

/// Names for what is named, again and again.
fn doubling() -> Vec<Costly> {
    let doubled = each(31, |it| format!("v{}: v{it} + v{it}\n", it + 1));
    let doubled = format!("v0: zone\n{doubled}");
    let mut used = of_rule(
        "variables that double, used",
        "size(v31)",
        "for one offering",
    );
    let of = &mut used.source.data;
    of.insert("variables".to_owned(), doubled.clone());
    vec![
        of_rule("ints that double", &nested("1", 24), ""),
        of_rule("strings that double", &nested("zone", 40), STEPS),
        of_key("variables", "variables that double", &doubled, ""),
        used,
        of_rule("loops in loops", &of_lists(60, 6), STEPS),
        of_rule("lists of lists", &of_lists(400, 2), STEPS),
        of_rule(
            "a text that grows",
            &format!(
                "size(\"{}\".replace(\"a\", \"{}\"))",
                "a".repeat(900),
                "b".repeat(900)
            ),
            "for one offering",
        ),
    ]
}

/// Much of everything.
fn large() -> Vec<Costly> {
    let lines = |line: &str, count: usize| vec![line; count].join("\n");
    let one_of_many = "price < 0 && price < 0 && price < 0";
    let variables = each(300, |it| format!("a{it}: 1\n"));
    let unknown = format!("0{}", "+unknown".repeat(90));
    vec![
        of_rule("unknown words", &unknown, "and 80 more"),
        of_rule(
            "a long text",
            &format!("size(\"{}\")", "x".repeat(5000)),
            "may have 4096",
        ),
        of_key(
            "variables",
            "many variables",
            &variables,
            "there may be 32 variables",
        ),
        of_key(
            "exclude",
            "many exclusions",
            &lines("price < 0", 65),
            "there may be 64 lines",
        ),
        of_key(
            "exclude",
            "much text",
            &lines(one_of_many, 600),
            "may have 16384",
        ),
    ]
}

fn patterns() -> Vec<Costly> {
    let matching = |pattern: &str| format!("zone.matches(\"{pattern}\") ? 1 : 2");
    let lines = vec!["zone.matches(\"a{1,9}\")"; 17].join("\n");
    let deep = matching(&format!("{}{}", "(".repeat(100), ")".repeat(100)));
    vec![
        of_key(
            "exclude",
            "many patterns",
            &lines,
            "there may be 16 patterns",
        ),
        of_rule(
            "a large pattern",
            &matching("(a{1,99}){1,99}"),
            "too large; repeat less",
        ),
        of_rule("a deep pattern", &deep, "not a pattern"),
        of_rule(
            "a long pattern",
            &matching(&"a?".repeat(200)),
            "may have 256",
        ),
        of_rule(
            "patterns without end",
            "zone.matches(instance_type + string(price)) ? 1 : 2",
            "more than 16 different patterns in one call",
        ),
    ]
}

fn settings() -> Vec<Costly> {
    let with = |mut costly: Costly, config: String| {
        costly.source.data.insert("config".to_owned(), config);
        costly
    };
    let large = format!("{{\"blob\": \"{}\"}}", "ab".repeat(450_000));
    let (blob, part) = ("a".repeat(30_000), "a".repeat(15_000));
    let medium = format!("{{\"blob\": \"{blob}b\", \"part\": \"{part}b\"}}");
    let searching = "config.blob.contains(config.part) ? 1 : 2";
    vec![
        with(
            of_rule(
                "large settings",
                "price",
                "data.config: has 900011 bytes, and a rule reads up to 65536",
            ),
            large,
        ),
        with(of_rule("settings searched", searching, STEPS), medium),
    ]
}

/// As much as is let in.
fn at_the_limit() -> Vec<Costly> {
    let (few, more) = (list(10), list(130));
    let nine = list(9);
    vec![
        of_rule(
            "turns of a loop",
            &format!("{more}.map(a, a * 2 + a * 3).sum() + price"),
            "",
        ),
        of_rule(
            "lists made of lists",
            &format!("size({nine}.map(a, {nine}.map(b, [a, b])))"),
            "",
        ),
        of_rule(
            "strings made of strings",
            &format!("size({few}.map(a, zone.split(\"\").join(\"-\")))"),
            "",
        ),
        of_rule(
            "patterns at work",
            &format!("{few}.exists(a, zone.matches(\"^(a|b|[^-]*-)+[x-z]$\")) ? price : price + 1"),
            "",
        ),
        of_rule(
            "times",
            &format!(
                "{}.map(a, now.getDayOfYear(\"Europe/Berlin\")).sum()",
                list(80)
            ),
            "",
        ),
    ]
}

fn costly() -> Vec<Costly> {
    let all = [
        deep(),
        doubling(),
        large(),
        patterns(),
        settings(),
        at_the_limit(),
    ];
    all.into_iter().flatten().collect()
}

const ATTEMPTS_AT_LEAST: usize = 5;
const ATTEMPTS: usize = 60;

#[test]
fn what_a_rule_costs_is_bounded_when_it_is_checked() {
    let host = host();
    let mut slow = Vec::new();
    for Costly {
        name,
        source,
        words,
    } in costly()
    {
        let mut took = Duration::MAX;
        // The machine has other things to do now and then, and other tests want memory of the kernel.
        for attempt in 0..ATTEMPTS {
            if attempt >= ATTEMPTS_AT_LEAST && took < CHECK_TIME_MAX * SLOWER {
                break;
            }
            let started = at_work();
            let status = host.apply(&source);
            took = took.min(at_work().saturating_sub(started));
            let state = if words.is_empty() {
                BindingState::Ready
            } else {
                BindingState::Degraded
            };
            assert_eq!(status.state, state, "{name}: {status:?}");
            assert!(status.message.contains(words), "{name}: {}", status.message);
        }
        slow.extend((took >= CHECK_TIME_MAX * SLOWER).then_some((name, took)));
        assert_eq!(host.rank(&round()).rankings.len(), 2, "{name}");
    }
    assert!(slow.is_empty(), "{slow:?}");
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
    let source = costly.unwrap().source;
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
    let started = Instant::now();
    let answer = host.rank(&large);
    assert!(started.elapsed() < Duration::from_secs(5) * SLOWER);
    let outcome = &answer.uses[0].outcome;
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
