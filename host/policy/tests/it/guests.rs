//! Guests that misbehave on purpose, each a few lines of text around one frame, and the same as components in
//! `tests/guests`, for those who have nothing to make components with.

use std::fs;

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A rank policy around a body that may do anything. `$args` points to the flattened arguments; what it
/// leaves is a pointer to the result. `$echo` answers properly, with the prices as scores.
pub(crate) const GUEST: &str = r#"(module
  (import "mortise:policy/host@0.1.0" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 160)
  (table $table 1 funcref)
  (global $top (mut i32) (i32.const 1048576))
  (global $calls (mut i32) (i32.const 0))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $top (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.get $top)
    (global.set $top (i32.add (global.get $top) (local.get 3))))
  (func (export "mortise:policy/lifecycle@0.1.0#describe") (result i32) DESCRIBE)
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

pub(crate) const ALWAYS: &str = "(i32.const 1)";
/// The questions of loading come from a cluster with a name of six letters, the tests' round from one of four.
pub(crate) const AT_WORK: &str =
    "(i32.eq (i32.load (i32.add (local.get $args) (i32.const 20))) (i32.const 4))";

/// A module is let in when it answers samples of 1,200 rows, and made-up rounds of 400 and less.
const IN_A_CLUSTER: &str = "(i32.and (i32.gt_u (call $rows (local.get $args)) (i32.const 400)) \
    (i32.ne (call $rows (local.get $args)) (i32.const 1200)))";

pub(crate) const TRAP: &str = "unreachable";
pub(crate) const LOOP: &str = "(loop $for_ever (br $for_ever)) (i32.const 0)";
pub(crate) const NAN: &str = "(memory.fill (i32.const 524288) (i32.const 255) (i32.const 65536)) \
    (call $answer (local.get $args) (i32.const 524288))";
pub(crate) const NEGATIVE: &str = "(i64.store (i32.const 524288) (i64.const 0xbff0000000000000)) \
    (call $answer (local.get $args) (i32.const 524288))";
pub(crate) const SHORT: &str = "(i32.const 1024)";
pub(crate) const OUT_OF_BOUNDS: &str = "(i32.store (i32.const 2052) (i32.const 4096)) \
    (i32.store (i32.const 2056) (i32.const 0x7ffffff)) (i32.const 2048)";
pub(crate) const REFUSAL: &str = "(i32.store8 (i32.const 2048) (i32.const 1)) (i32.const 2048)";
/// The same, of a policy that may answer later.
pub(crate) const TRANSIENT_REFUSAL: &str = "(i32.store8 (i32.const 2048) (i32.const 1)) \
     (i32.store8 (i32.const 2060) (i32.const 1)) (i32.const 2048)";
pub(crate) const MEMORY_BOMB: &str = "(drop (memory.grow (i32.const 4000))) unreachable";
pub(crate) const TABLE_BOMB: &str =
    "(drop (table.grow $table (ref.null func) (i32.const 100000000))) unreachable";
/// A proper answer after 20,000 lines.
pub(crate) const LOG_FLOOD: &str = "(loop $next \
      (call $log (i32.const 1) (i32.const 1024) (i32.const 400)) \
      (local.set $at (i32.add (local.get $at) (i32.const 1))) \
      (br_if $next (i32.lt_u (local.get $at) (i32.const 20000)))) \
    (call $echo (local.get $args))";
/// 4,096 reasons that are all the same megabyte.
pub(crate) const AMPLIFIER: &str = "(drop (call $echo (local.get $args))) \
    (i32.store (i32.const 4120) (i32.const 524288)) (i32.store (i32.const 4124) (i32.const 4096)) \
    (loop $next \
      (i32.store (i32.add (i32.const 524292) (local.get $at)) (i32.const 1048576)) \
      (local.set $at (i32.add (local.get $at) (i32.const 8))) \
      (br_if $next (i32.lt_u (local.get $at) (i32.const 32768)))) \
    (i32.const 2048)";
pub(crate) const INFINITE: &str = "(i64.store (i32.const 524288) (i64.const 0x7ff0000000000000)) \
    (call $answer (local.get $args) (i32.const 524288))";
pub(crate) const STACK_OVERFLOW: &str = "(call $bad (local.get $args))";
/// A note whose bytes are no text.
pub(crate) const INVALID_UTF8: &str = "(drop (call $echo (local.get $args))) \
    (memory.fill (i32.const 524288) (i32.const 255) (i32.const 16)) \
    (i32.store8 (i32.const 4128) (i32.const 1)) (i32.store (i32.const 4132) (i32.const 524288)) \
    (i32.store (i32.const 4136) (i32.const 4)) (i32.const 2048)";
/// Candidate 9,999 excluded for a reason that is there.
pub(crate) const UNKNOWN_ROW: &str = "(drop (call $echo (local.get $args))) \
    (i32.store (i32.const 524288) (i32.const 9999)) \
    (i32.store (i32.const 4104) (i32.const 524288)) (i32.store (i32.const 4108) (i32.const 1)) \
    (i32.store (i32.const 4112) (i32.const 524296)) (i32.store (i32.const 4116) (i32.const 1)) \
    (i32.store (i32.const 4120) (i32.const 524304)) (i32.store (i32.const 4124) (i32.const 1)) \
    (i32.const 2048)";
pub(crate) const COUNTING: &str = "(global.set $calls (i32.add (global.get $calls) (i32.const 1))) \
    (i32.store (i32.const 524288) (global.get $calls)) (call $answer (local.get $args) (i32.const 524288))";

/// What hangs on where the question lies in memory, which is elsewhere in the next call.
pub(crate) const ADDRESSES: &str = "(i32.store (i32.const 524288) (local.get $args)) \
    (call $answer (local.get $args) (i32.const 524288))";

/// Says nothing of itself.
const SILENT: &str = "(i32.const 1024)";
/// Name, version and summary of 300,000 letters each.
const LONG_DESCRIPTION: &str = "(memory.fill (i32.const 2097152) (i32.const 120) (i32.const 300000)) \
    (i32.store (i32.const 3072) (i32.const 2097152)) (i32.store (i32.const 3076) (i32.const 300000)) \
    (i32.store (i32.const 3080) (i32.const 2097152)) (i32.store (i32.const 3084) (i32.const 300000)) \
    (i32.store (i32.const 3088) (i32.const 2097152)) (i32.store (i32.const 3092) (i32.const 300000)) \
    (i32.const 3072)";
/// Refuses with a message of four megabytes.
pub(crate) const LONG_REFUSAL: &str = "(memory.fill (i32.const 2097152) (i32.const 120) (i32.const 4194304)) \
    (i32.store8 (i32.const 2048) (i32.const 1)) (i32.store (i32.const 2052) (i32.const 2097152)) \
    (i32.store (i32.const 2056) (i32.const 4194304)) (i32.const 2048)";

/// A policy with a name, a version and a summary of 300,000 letters each, which does something at work.
pub(crate) fn long_texts(body: &str) -> Vec<u8> {
    described(LONG_DESCRIPTION, body, AT_WORK, "")
}

/// A proper policy that describes its settings with a schema.
pub(crate) fn with_schema(schema: &str) -> Vec<u8> {
    let bytes = schema.bytes().zip(2_097_152..);
    let stores: Vec<String> = bytes
        .map(|(byte, at)| format!("(i32.store8 (i32.const {at}) (i32.const {byte}))"))
        .collect();
    let describe = format!(
        "{} (i32.store (i32.const 3096) (i32.const 2097152)) \
         (i32.store (i32.const 3100) (i32.const {})) (i32.const 3072)",
        stores.join(" "),
        schema.len()
    );
    described(&describe, TRAP, "(i32.const 0)", "")
}

pub(crate) fn component(body: &str, when: &str, start: &str) -> Vec<u8> {
    described(SILENT, body, when, start)
}

fn described(describe: &str, body: &str, when: &str, start: &str) -> Vec<u8> {
    let text = GUEST
        .replace("DESCRIBE", describe)
        .replace("BODY", body)
        .replace("WHEN", when)
        .replace("START", start);
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    // The interface before this one, which is let in as well and lasts: what a guest may do to the host is the same.
    let (package, _) = resolve.push_dir("wit-0.1").unwrap();
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

/// The committed guests: what they do on every question, and what is never let in.
const COMMITTED: [(&str, &str, &str); 18] = [
    ("trap", TRAP, ""),
    ("endless-loop", LOOP, ""),
    ("endless-start", TRAP, ENDLESS_START),
    ("trapping-start", TRAP, TRAPPING_START),
    ("memory-bomb", MEMORY_BOMB, ""),
    ("table-bomb", TABLE_BOMB, ""),
    ("stack-overflow", STACK_OVERFLOW, ""),
    ("error-result", REFUSAL, ""),
    ("short-result", SHORT, ""),
    ("huge-result", AMPLIFIER, ""),
    ("out-of-bounds", OUT_OF_BOUNDS, ""),
    ("invalid-utf8", INVALID_UTF8, ""),
    ("score-nan", NAN, ""),
    ("score-infinite", INFINITE, ""),
    ("score-negative", NEGATIVE, ""),
    ("unknown-row", UNKNOWN_ROW, ""),
    ("state-between-calls", COUNTING, ""),
    ("non-determinism", ADDRESSES, ""),
];

/// Guests that pass what is asked of them when they are loaded and misbehave in a cluster, whose tables are larger.
const COMMITTED_IN_A_CLUSTER: [(&str, &str); 6] = [
    ("trap-in-a-cluster", TRAP),
    ("endless-in-a-cluster", LOOP),
    ("nan-in-a-cluster", NAN),
    ("negative-in-a-cluster", NEGATIVE),
    ("short-in-a-cluster", SHORT),
    ("flood-in-a-cluster", LOG_FLOOD),
];

pub(crate) const ENDLESS_START: &str = "(func $init (loop $for_ever (br $for_ever))) (start $init)";
pub(crate) const TRAPPING_START: &str = "(func $init unreachable) (start $init)";

/// One function of very many branches.
pub(crate) fn compile_bomb() -> Vec<u8> {
    let branches = "(if (local.get $args) (then (local.set $at (i32.add (local.get $at) (i32.load \
        (local.get $args))))) (else (local.set $at (i32.mul (local.get $at) (i32.const 3)))))";
    component(&(branches.repeat(20_000) + "unreachable"), ALWAYS, "")
}

/// A number as the binary format has it.
fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(number & 0x7f).unwrap();
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &leb128(content.len()), content].concat()
}

/// A component within so many components.
pub(crate) fn nested(component: Vec<u8>, depth: usize) -> Vec<u8> {
    let preamble = b"\0asm\x0d\0\x01\0";
    (0..depth).fold(component, |inner, _| {
        [&preamble[..], &section(4, &inner)].concat()
    })
}

/// A proper policy, and beside it so many modules with a memory of 64 MiB that touch all of it when they start.
pub(crate) fn with_memories(memories: usize) -> Vec<u8> {
    let mut component = component(TRAP, "(i32.const 0)", "");
    let module = wat::parse_str(
        "(module (memory 1024) (func $touch (local $at i32) (loop $next \
            (i32.store8 (local.get $at) (i32.const 1)) \
            (local.set $at (i32.add (local.get $at) (i32.const 4096))) \
            (br_if $next (i32.lt_u (local.get $at) (i32.const 67108864))))) (start $touch))",
    );
    let index = core_modules(&component);
    component.extend(section(1, &module.unwrap()));
    let instance = [&[0][..], &leb128(index), &leb128(0)].concat();
    let instances = [leb128(memories), instance.repeat(memories)].concat();
    component.extend(section(2, &instances));
    component
}

/// Modules that a component holds itself.
fn core_modules(component: &[u8]) -> usize {
    let (mut at, mut modules) = (8, 0);
    while let Some(id) = component.get(at) {
        modules += usize::from(*id == 1);
        let (mut length, mut shift) = (0, 0);
        loop {
            at += 1;
            length |= usize::from(component[at] & 0x7f) << shift;
            shift += 7;
            if component[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1 + length;
    }
    modules
}

/// What is no policy of this interface, what would be long in compiling, and what would take memory.
fn foreign() -> [(String, Vec<u8>); 8] {
    let text = |text: &str| wat::parse_str(text).unwrap();
    [
        ("core-module.wasm", text("(module)")),
        ("nothing.wasm", text("(component)")),
        (
            "other-world.wasm",
            text(r#"(component (import "wasi:cli/environment@0.2.0" (instance)))"#),
        ),
        (
            "other-version.wasm",
            text(r#"(component (import "mortise:policy/host@0.3.0" (instance)))"#),
        ),
        (
            "compile-bomb.wasm.zst",
            zstd::encode_all(&compile_bomb()[..], 19).unwrap(),
        ),
        (
            "nested-bomb.wasm.zst",
            zstd::encode_all(&nested(compile_bomb(), 9)[..], 19).unwrap(),
        ),
        ("sixteen-memories.wasm", with_memories(16)),
        ("long-texts.wasm", long_texts(LONG_REFUSAL)),
    ]
    .map(|(name, bytes)| (format!("tests/guests/{name}"), bytes))
}

fn committed() -> Vec<(String, Vec<u8>)> {
    let always = COMMITTED.map(|(name, body, start)| (name, component(body, ALWAYS, start)));
    let in_a_cluster =
        COMMITTED_IN_A_CLUSTER.map(|(name, body)| (name, component(body, IN_A_CLUSTER, "")));
    let flood = ("log-flood", component(LOG_FLOOD, ALWAYS, ""));
    let proper = ("proper", component(TRAP, "(i32.const 0)", ""));
    always
        .into_iter()
        .chain(in_a_cluster)
        .chain([flood, proper])
        .map(|(name, bytes)| (format!("tests/guests/{name}.wasm"), bytes))
        .chain(foreign())
        .collect()
}

#[test]
fn committed_guests_are_what_their_texts_say() {
    let update = std::env::var_os("UPDATE_GUESTS").is_some();
    for (file, bytes) in committed() {
        if update {
            fs::create_dir_all("tests/guests").unwrap();
            fs::write(&file, &bytes).unwrap();
        }
        let found = fs::read(&file).unwrap_or_default();
        assert!(found == bytes, "{file} is old: run with UPDATE_GUESTS=1");
    }
}
