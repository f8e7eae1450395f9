//! Modules that misbehave, each a few lines of text: whatever they do, the round is decided in time by
//! the default, and the reason is there to be read.

use std::sync::{Arc, Mutex};

use policy::{BindingState, CallLimits, Limits, PolicyHost, PolicyRegistry as _};
use scheduling::ranking::RankHook;

use crate::guests::{
    ADDRESSES, ALWAYS, AMPLIFIER, AT_WORK, COUNTING, ENDLESS_START, INFINITE, INVALID_UTF8,
    LOG_FLOOD, LONG_REFUSAL, LOOP, MEMORY_BOMB, NAN, NEGATIVE, OUT_OF_BOUNDS, REFUSAL, SHORT,
    STACK_OVERFLOW, TABLE_BOMB, TRAP, TRAPPING_START, UNKNOWN_ROW, component,
};
use crate::support::{annotated, host, key, module, round};

fn check_default_decides(host: &PolicyHost, what: &str) {
    let answer = host.rank(&round());
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11], "{what}");
    assert_eq!(answer.uses.last().unwrap().outcome.as_str(), "ok", "{what}");
}

#[test]
fn a_proper_guest_of_this_kind_is_let_in() {
    let host = host();
    let status = host.apply(&module(
        "proper",
        "rank",
        component(TRAP, "(i32.const 0)", ""),
    ));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    assert_eq!(host.rank(&round()).uses[0].name, "proper");
}

/// What guests do with every question, and the reason and words of the status that follow.
const REFUSED: [(&str, &[&str], &str); 16] = [
    (
        TRAP,
        &["Trapped"],
        "trapped: wasm `unreachable` instruction executed",
    ),
    (
        LOOP,
        &["DeadlineExceeded", "OutOfFuel"],
        "answering a sample question",
    ),
    (
        NAN,
        &["InvalidAnswer"],
        "the score NaN is not a finite cost",
    ),
    (
        NEGATIVE,
        &["InvalidAnswer"],
        "the score -1 is not a finite cost",
    ),
    (
        INFINITE,
        &["InvalidAnswer"],
        "the score inf is not a finite cost",
    ),
    (
        UNKNOWN_ROW,
        &["InvalidAnswer"],
        "exclusion of candidate 9999 of 6",
    ),
    (STACK_OVERFLOW, &["Trapped"], "call stack exhausted"),
    (INVALID_UTF8, &["Trapped"], "utf-8"),
    (
        SHORT,
        &["InvalidAnswer"],
        "0 rankings where 2 were asked for",
    ),
    (OUT_OF_BOUNDS, &["Trapped"], "out of bounds"),
    (REFUSAL, &["Refused"], "refused"),
    (
        MEMORY_BOMB,
        &["OutOfMemory"],
        "wanted more than 67108864 bytes of memory",
    ),
    (
        TABLE_BOMB,
        &["OutOfMemory"],
        "wanted a table of more than 20000 elements",
    ),
    (AMPLIFIER, &["Trapped"], "trapped"),
    (
        COUNTING,
        &["NotDeterministic"],
        "a second call gave another answer",
    ),
    (
        ADDRESSES,
        &["NotDeterministic"],
        "a second call gave another answer",
    ),
];

#[test]
fn what_misbehaves_on_sample_questions_is_not_let_in() {
    let host = host();
    for (body, reasons, words) in REFUSED {
        let status = host.apply(&module("bad", "rank", component(body, ALWAYS, "")));
        assert_eq!(status.state, BindingState::Degraded, "{body}");
        assert!(
            reasons.contains(&status.reason.as_str()),
            "{body}: {status:?}"
        );
        assert!(status.message.contains(words), "{body}: {}", status.message);
        assert!(
            status.message.contains("the built-in default decides"),
            "{}",
            status.message
        );
        check_default_decides(&host, body);
    }
}

#[test]
fn what_answers_only_rounds_of_some_sizes_is_not_let_in() {
    let host = host();
    let of_three_rows = "(i32.eq (call $rows (local.get $args)) (i32.const 3))";
    for (body, words) in [
        (TRAP, "rank round 3 of 3 rows: trapped"),
        (LOOP, "rank round 3 of 3 rows: ran out of fuel"),
        (NAN, "the score NaN is not a finite cost"),
    ] {
        let status = host.apply(&module("bad", "rank", component(body, of_three_rows, "")));
        assert_eq!(status.reason, "NotConformant", "{status:?}");
        assert!(status.message.contains(words), "{}", status.message);
        check_default_decides(&host, body);
    }
}

#[test]
fn what_a_policy_keeps_is_gone_with_the_round() {
    let host = host();
    let status = host.apply(&module("counts", "rank", component(COUNTING, AT_WORK, "")));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let first = host.rank(&round());
    assert_eq!(first.uses[0].outcome.as_str(), "ok");
    // It counts its calls, and each is the first.
    assert_eq!(first, host.rank(&round()));
}

#[test]
fn what_misbehaves_at_work_is_replaced_in_the_same_round() {
    let host = host();
    for (body, reason) in [
        (TRAP, "Trapped"),
        (NAN, "InvalidAnswer"),
        (SHORT, "InvalidAnswer"),
        (MEMORY_BOMB, "OutOfMemory"),
        (REFUSAL, "Refused"),
    ] {
        host.remove_binding(&key("bad"));
        let status = host.apply(&module("bad", "rank", component(body, AT_WORK, "")));
        assert_eq!(status.state, BindingState::Ready, "{body}: {status:?}");
        let answer = host.rank(&round());
        assert_eq!(answer.rankings[0].scores, [0.10, 0.11], "{body}");
        assert!(
            answer.uses[0].outcome.as_str().starts_with(reason),
            "{:?}",
            answer.uses
        );
        let events = host.drain_events();
        assert_eq!(
            (events[0].reason.as_str(), events[0].binding.clone()),
            (reason, Some(key("bad")))
        );
        assert!(
            events[0]
                .message
                .contains("the built-in default decided rank-1"),
            "{events:?}"
        );
    }
}

#[test]
fn a_runaway_dies_by_its_deadline() {
    let unbound = CallLimits {
        fuel: u64::MAX / 4,
        ..Limits::default().rank
    };
    let host = PolicyHost::new(Limits {
        rank: unbound,
        ..Limits::default()
    })
    .unwrap();
    let status = host.apply(&module("runaway", "rank", component(LOOP, AT_WORK, "")));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    let started = std::time::Instant::now();
    let answer = host.rank(&round());
    // Generous: the machine that runs the tests has other things to do.
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
    let outcome = answer.uses[0].outcome.as_str();
    assert!(
        outcome.starts_with("DeadlineExceeded") || outcome.starts_with("OutOfFuel"),
        "{outcome}"
    );
}

#[test]
fn three_failures_within_five_minutes_put_a_policy_into_quarantine_until_it_changes() {
    let host = host();
    let source = module("bad", "rank", component(TRAP, AT_WORK, ""));
    host.apply(&source);
    let mut at = round();
    for (minute, state) in [
        (0, BindingState::Ready),
        // Six minutes later the first is forgotten.
        (6, BindingState::Ready),
        (7, BindingState::Ready),
        (8, BindingState::Quarantined),
    ] {
        at.now_seconds = round().now_seconds + minute * 60;
        host.rank(&at);
        assert_eq!(
            host.status(&key("bad")).unwrap().state,
            state,
            "minute {minute}"
        );
    }
    assert_eq!(host.rank(&at).uses[0].name, "default-rank");
    assert_eq!(host.drain_events().last().unwrap().reason, "Quarantined");
    // Another place in the chain is no other policy.
    let moved = annotated(source.clone(), "order", "5");
    assert_eq!(host.apply(&moved).state, BindingState::Quarantined);
    assert_eq!(host.rank(&at).uses[0].name, "default-rank");
    let mut changed = source;
    changed.data.insert("config".to_owned(), "{}".to_owned());
    assert_eq!(host.apply(&changed).state, BindingState::Ready);
    assert_eq!(host.rank(&at).uses[0].name, "bad");
}

#[test]
fn who_listens_hears_of_each_failure_and_can_read_what_came_of_it() {
    let host = host();
    host.apply(&module("bad", "rank", component(TRAP, AT_WORK, "")));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (of, into) = (host.clone(), Arc::clone(&heard));
    host.listen(Arc::new(move |key| {
        let status = of.status(key).unwrap();
        let told = (status.state, status.failures, of.take_failures(key).len());
        into.lock().unwrap().push(told);
    }));
    for _ in 0..3 {
        host.rank(&round());
    }
    let expected = [
        (BindingState::Ready, 1, 1),
        (BindingState::Ready, 2, 1),
        // The failure, and the quarantine that it led to.
        (BindingState::Quarantined, 3, 1),
        (BindingState::Quarantined, 3, 1),
    ];
    assert_eq!(*heard.lock().unwrap(), expected);
}

#[test]
fn start_code_runs_within_limits() {
    let host = host();
    for (start, reasons) in [
        (ENDLESS_START, &["DeadlineExceeded", "OutOfFuel"][..]),
        (TRAPPING_START, &["NotStarted"]),
    ] {
        let status = host.apply(&module("bad", "rank", component(TRAP, AT_WORK, start)));
        assert!(reasons.contains(&status.reason.as_str()), "{status:?}");
        check_default_decides(&host, start);
    }
}

#[test]
fn what_is_no_policy_component_is_named() {
    let host = host();
    let core = wat::parse_str("(module)").unwrap();
    let foreign = wat::parse_str(r#"(component (import "wasi:cli/environment@0.2.0" (instance)))"#);
    let newer = wat::parse_str(r#"(component (import "mortise:policy/host@0.3.0" (instance)))"#);
    let empty = wat::parse_str("(component)").unwrap();
    for (bytes, reason, words) in [
        (core, "InvalidComponent", "not a valid component"),
        (
            b"(component)".to_vec(),
            "InvalidComponent",
            "does not begin as WebAssembly does",
        ),
        (
            Vec::new(),
            "InvalidComponent",
            "does not begin as WebAssembly does",
        ),
        (
            foreign.unwrap(),
            "ForbiddenImport",
            "imports wasi:cli/environment@0.2.0",
        ),
        (
            newer.unwrap(),
            "ForbiddenImport",
            "imports mortise:policy/host@0.3.0",
        ),
        (
            empty,
            "WrongWorld",
            "does not export mortise:policy/lifecycle@0.2 (or 0.1); it exports nothing",
        ),
    ] {
        let status = host.apply(&module("bad", "rank", bytes));
        assert_eq!(status.reason, reason, "{status:?}");
        assert!(status.message.contains(words), "{}", status.message);
        check_default_decides(&host, words);
    }
}

#[test]
fn a_flood_of_lines_is_cut_and_the_answer_counts() {
    let host = host();
    let status = host.apply(&module("flood", "rank", component(LOG_FLOOD, AT_WORK, "")));
    assert_eq!(status.state, BindingState::Ready, "{status:?}");
    host.drain_records();
    let answer = host.rank(&round());
    assert_eq!(answer.uses[0].outcome.as_str(), "ok", "{:?}", answer.uses);
    let record = host.drain_records().remove(0);
    let bytes: usize = record.log.iter().map(String::len).sum();
    assert!(bytes < 20_000, "{bytes} bytes were kept");
    assert!(
        record.log.last().unwrap().contains("more lines dropped"),
        "{:?}",
        record.log.last()
    );
}

#[test]
fn a_module_that_takes_long_to_compile_is_given_up() {
    let host = PolicyHost::new(Limits {
        compile: std::time::Duration::from_millis(1),
        function_bytes_max: usize::MAX,
        ..Limits::default()
    })
    .unwrap();
    let started = std::time::Instant::now();
    let status = host.apply(&module("bomb", "rank", crate::guests::compile_bomb()));
    assert_eq!(status.reason, "CompileTimeout", "{status:?}");
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
    check_default_decides(&host, "compile bomb");
}

/// Whoever waits for a compiler of its own must not be given a share of the slow one's work.
#[test]
fn what_is_slow_to_compile_holds_up_no_other_that_is_being_compiled() {
    let waiting = |compile_millis, function_bytes_max| {
        PolicyHost::new(Limits {
            compile: std::time::Duration::from_millis(compile_millis),
            function_bytes_max,
            ..Limits::default()
        })
        .unwrap()
    };
    let host = waiting(10_000, Limits::default().function_bytes_max);
    let careless = waiting(1, usize::MAX);
    let good = module("good", "rank", crate::support::component("default-rank"));
    let bomb = module("bomb", "rank", crate::guests::compile_bomb());
    let both_begin = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let compiling = scope.spawn(|| {
            both_begin.wait();
            host.apply(&good)
        });
        both_begin.wait();
        let status = careless.apply(&bomb);
        assert_eq!(status.reason, "CompileTimeout", "{status:?}");
        let status = compiling.join().unwrap();
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
    });
}

#[test]
fn a_function_that_would_keep_a_compiler_busy_is_refused_unseen() {
    let host = host();
    let bomb = module("bomb", "rank", crate::guests::compile_bomb());
    for _ in 0..2 {
        let status = host.apply(&bomb);
        assert_eq!(status.reason, "FunctionTooLarge", "{status:?}");
        check_default_decides(&host, "compile bomb");
    }
}

#[test]
fn no_nesting_hides_a_function_that_would_keep_a_compiler_busy() {
    let host = host();
    for (depth, reason) in [
        (1, "FunctionTooLarge"),
        (6, "FunctionTooLarge"),
        (9, "NestedTooDeep"),
        (2000, "NestedTooDeep"),
    ] {
        let bomb = crate::guests::nested(crate::guests::compile_bomb(), depth);
        let started = std::time::Instant::now();
        let status = host.apply(&module("bomb", "rank", bomb));
        assert_eq!(status.reason, reason, "{depth}: {status:?}");
        assert!(started.elapsed() < std::time::Duration::from_secs(5));
        check_default_decides(&host, "nested bomb");
    }
}

#[test]
fn memories_count_together_and_take_no_room_from_others() {
    let host = host();
    let good = module("good", "rank", component(TRAP, "(i32.const 0)", ""));
    assert_eq!(host.apply(&good).state, BindingState::Ready);
    for memories in [4, 15, 300] {
        let hostile = crate::guests::with_memories(memories);
        let status = host.apply(&module("hostile", "rank", hostile));
        assert_eq!(status.reason, "TooManyMemories", "{status:?}");
        let words = format!("has {} memories and may have 4", memories + 1);
        assert!(status.message.contains(&words), "{}", status.message);
        let answer = host.rank(&round());
        assert_eq!(answer.uses.len(), 1, "{:?}", answer.uses);
        assert_eq!(answer.uses[0].name, "good");
        assert_eq!(answer.uses[0].outcome.as_str(), "ok");
    }
}

#[test]
fn long_texts_of_a_guest_are_cut_where_they_enter() {
    let host = host();
    let guest = crate::guests::long_texts(LONG_REFUSAL);
    let status = host.apply(&module("talks", "rank", guest));
    assert_eq!(status.state, BindingState::Ready, "{}", status.reason);
    assert!(status.message.len() < 4096, "{}", status.message.len());
    let answer = host.rank(&round());
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11]);
    let outcome = answer.uses[0].outcome.as_str();
    assert!(outcome.starts_with("Refused: refused: xxx"), "{outcome}");
    assert!(outcome.len() < 2048, "{}", outcome.len());
    let events = host.drain_events();
    assert!(
        events[0].message.len() < 4096,
        "{}",
        events[0].message.len()
    );
    let records = host.drain_records();
    assert!(records.iter().all(|it| it.outcome.as_str().len() < 2048));
}

#[test]
fn truncated_and_flipped_bytes_never_stop_the_host() {
    // What a flip sets going must not go on for long.
    let brief = CallLimits {
        fuel: 5_000_000,
        ..Limits::default().load
    };
    let host = PolicyHost::new(Limits {
        rank: brief,
        load: brief,
        ..Limits::default()
    })
    .unwrap();
    let good = component(TRAP, "(i32.const 0)", "");
    for it in 0..10_000_usize {
        let mut bytes = good.clone();
        let at = it * 7919 % bytes.len();
        if it % 2 == 0 {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << (it % 8);
        }
        // Some flips are harmless, most are not; all leave a round decided.
        host.apply(&module("flipped", "rank", bytes));
        if it % 97 == 0 {
            assert_eq!(host.rank(&round()).rankings.len(), 2);
        }
    }
}
