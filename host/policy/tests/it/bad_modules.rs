//! Modules that misbehave, each a few lines of text: whatever they do, the round is decided in time by
//! the default, and the reason is there to be read.

use policy::{BindingState, CallLimits, Limits, PolicyHost};
use scheduling::ranking::RankHook;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::support::{annotated, host, key, module, round};

/// A rank policy around a body that may do anything. `$args` points to the flattened arguments; what it
/// leaves is a pointer to the result. `$echo` answers properly, with the prices as scores.
const GUEST: &str = r#"(module
  (memory (export "memory") 160)
  (global $top (mut i32) (i32.const 1048576))
  (global $calls (mut i32) (i32.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $top (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.get $top)
    (global.set $top (i32.add (global.get $top) (local.get 3))))
  (func (export "mortise:policy/lifecycle@0.1.0#describe") (result i32) (i32.const 1024))
  (func (export "mortise:policy/lifecycle@0.1.0#validate") (param i32 i32) (result i32) (i32.const 1024))
  (func (export "mortise:policy/lifecycle@0.1.0#configure") (param i32 i32) (result i32) (i32.const 1024))
  ;; One ranking of 44 bytes a claim of 64, from $scores; a claim without candidates is for all rows.
  (func $answer (param $args i32) (param $scores i32) (result i32)
    (local $claim i32) (local $left i32) (local $out i32) (local $count i32)
    (local.set $claim (i32.load (i32.add (local.get $args) (i32.const 192))))
    (local.set $left (i32.load (i32.add (local.get $args) (i32.const 196))))
    (i32.store (i32.const 2048) (i32.const 0))
    (i32.store (i32.const 2052) (i32.const 4096))
    (i32.store (i32.const 2056) (local.get $left))
    (local.set $out (i32.const 4096))
    (block $done (loop $next
      (br_if $done (i32.eqz (local.get $left)))
      (local.set $count (i32.load (i32.add (local.get $claim) (i32.const 12))))
      (if (i32.eqz (local.get $count))
        (then (local.set $count (i32.load (i32.add (local.get $args) (i32.const 92))))))
      (i32.store (local.get $out) (local.get $scores))
      (i32.store (i32.add (local.get $out) (i32.const 4)) (local.get $count))
      (local.set $claim (i32.add (local.get $claim) (i32.const 64)))
      (local.set $out (i32.add (local.get $out) (i32.const 44)))
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br $next)))
    (i32.const 2048))
  (func $echo (param $args i32) (result i32)
    (call $answer (local.get $args) (i32.load (i32.add (local.get $args) (i32.const 88)))))
  (func $rows (param $args i32) (result i32)
    (i32.load (i32.add (local.get $args) (i32.const 92))))
  (func $bad (param $args i32) (result i32) (local $at i32)
    BODY)
  (func (export "mortise:policy/rank@0.1.0#rank") (param $args i32) (result i32)
    (if (result i32) WHEN
      (then (call $bad (local.get $args)))
      (else (call $echo (local.get $args)))))
  START)"#;

const ALWAYS: &str = "(i32.const 1)";
/// The sample questions of loading have six rows and more, the tests' round has two.
const AT_WORK: &str = "(i32.eq (call $rows (local.get $args)) (i32.const 2))";

const TRAP: &str = "unreachable";
const LOOP: &str = "(loop $for_ever (br $for_ever)) (i32.const 0)";
const NAN: &str = "(memory.fill (i32.const 524288) (i32.const 255) (i32.const 65536)) \
    (call $answer (local.get $args) (i32.const 524288))";
const NEGATIVE: &str = "(i64.store (i32.const 524288) (i64.const 0xbff0000000000000)) \
    (call $answer (local.get $args) (i32.const 524288))";
const SHORT: &str = "(i32.const 1024)";
const OUT_OF_BOUNDS: &str = "(i32.store (i32.const 2052) (i32.const 4096)) \
    (i32.store (i32.const 2056) (i32.const 0x7ffffff)) (i32.const 2048)";
const REFUSAL: &str = "(i32.store8 (i32.const 2048) (i32.const 1)) (i32.const 2048)";
const MEMORY_BOMB: &str = "(drop (memory.grow (i32.const 4000))) unreachable";
/// 4,096 reasons that are all the same megabyte.
const AMPLIFIER: &str = "(drop (call $echo (local.get $args))) \
    (i32.store (i32.const 4120) (i32.const 524288)) (i32.store (i32.const 4124) (i32.const 4096)) \
    (loop $next \
      (i32.store (i32.add (i32.const 524292) (local.get $at)) (i32.const 1048576)) \
      (local.set $at (i32.add (local.get $at) (i32.const 8))) \
      (br_if $next (i32.lt_u (local.get $at) (i32.const 32768)))) \
    (i32.const 2048)";
const INFINITE: &str = "(i64.store (i32.const 524288) (i64.const 0x7ff0000000000000)) \
    (call $answer (local.get $args) (i32.const 524288))";
const STACK_OVERFLOW: &str = "(call $bad (local.get $args))";
/// A note whose bytes are no text.
const INVALID_UTF8: &str = "(drop (call $echo (local.get $args))) \
    (memory.fill (i32.const 524288) (i32.const 255) (i32.const 16)) \
    (i32.store8 (i32.const 4128) (i32.const 1)) (i32.store (i32.const 4132) (i32.const 524288)) \
    (i32.store (i32.const 4136) (i32.const 4)) (i32.const 2048)";
/// Candidate 9,999 excluded for a reason that is there.
const UNKNOWN_ROW: &str = "(drop (call $echo (local.get $args))) \
    (i32.store (i32.const 524288) (i32.const 9999)) \
    (i32.store (i32.const 4104) (i32.const 524288)) (i32.store (i32.const 4108) (i32.const 1)) \
    (i32.store (i32.const 4112) (i32.const 524296)) (i32.store (i32.const 4116) (i32.const 1)) \
    (i32.store (i32.const 4120) (i32.const 524304)) (i32.store (i32.const 4124) (i32.const 1)) \
    (i32.const 2048)";
const COUNTING: &str = "(global.set $calls (i32.add (global.get $calls) (i32.const 1))) \
    (i32.store (i32.const 524288) (global.get $calls)) (call $answer (local.get $args) (i32.const 524288))";

fn component(body: &str, when: &str, start: &str) -> Vec<u8> {
    let text = GUEST
        .replace("BODY", body)
        .replace("WHEN", when)
        .replace("START", start);
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir("../../wit").unwrap();
    let world = resolve
        .select_world(&[package], Some("rank-policy"))
        .unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .unwrap()
        .encode()
        .unwrap()
}

fn check_default_decides(host: &PolicyHost, what: &str) {
    let answer = host.rank(&round());
    assert_eq!(answer.rankings[0].scores, [0.10, 0.11], "{what}");
    assert_eq!(answer.uses.last().unwrap().outcome, "ok", "{what}");
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

#[test]
fn what_misbehaves_on_sample_questions_is_not_let_in() {
    let host = host();
    for (body, reasons, words) in [
        (
            TRAP,
            &["Trapped"][..],
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
        (AMPLIFIER, &["Trapped"], "trapped"),
        (
            COUNTING,
            &["NotDeterministic"],
            "a second call gave another answer",
        ),
    ] {
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
            answer.uses[0].outcome.starts_with(reason),
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
    let outcome = &answer.uses[0].outcome;
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
fn start_code_runs_within_limits() {
    let host = host();
    for (start, reasons) in [
        (
            "(func $init (loop $for_ever (br $for_ever))) (start $init)",
            &["DeadlineExceeded", "OutOfFuel"][..],
        ),
        ("(func $init unreachable) (start $init)", &["NotStarted"]),
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
    let newer = wat::parse_str(r#"(component (import "mortise:policy/host@0.2.0" (instance)))"#);
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
            "imports mortise:policy/host@0.2.0",
        ),
        (
            empty,
            "WrongWorld",
            "does not export mortise:policy/lifecycle@0.1; it exports nothing",
        ),
    ] {
        let status = host.apply(&module("bad", "rank", bytes));
        assert_eq!(status.reason, reason, "{status:?}");
        assert!(status.message.contains(words), "{}", status.message);
        check_default_decides(&host, words);
    }
}

#[test]
fn truncated_and_flipped_bytes_never_stop_the_host() {
    let host = host();
    let good = component(TRAP, "(i32.const 0)", "");
    for it in 0..60_usize {
        let mut bytes = good.clone();
        let at = it * 7919 % bytes.len();
        if it % 2 == 0 {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << (it % 8);
        }
        // Some flips are harmless, most are not; all leave a round decided.
        host.apply(&module("flipped", "rank", bytes));
        assert_eq!(host.rank(&round()).rankings.len(), 2);
    }
}
