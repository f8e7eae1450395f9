//! The house rules that a program can check: dependency arrows, file sizes, module docs, forbidden calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tests::sources::rust_sources;
use tests::workspace_root;

const LINES_MAX: usize = 700;
const COLUMNS_MAX: usize = 180;
/// Rule 6 of STYLE.md: comments, and the documents for those who work here.
const PROSE_COLUMNS_MAX: usize = 120;
const PROSE: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md"];
/// Where comments are still wider: a policy's sources are part of the digest of its component, so they are wrapped when
/// it is built anew.
const WIDE_STILL: &str = "policies";

/// Crates that must stay free of clocks, async and hash order.
const PURE: [&str; 9] = [
    "apis",
    "hooks",
    "scheduling",
    "state",
    "planning",
    "problem-file",
    "convert",
    "shadow",
    "disruption",
];

#[test]
fn arrows_between_crates_are_those_of_the_architecture() {
    let allowed = arrows_of_the_architecture();
    let mut faults = String::new();
    for (package, dependencies) in arrows_of_cargo(&["normal", "build"]) {
        if package_is_policy(&package) {
            continue;
        }
        let Some(allowed) = allowed.get(&package) else {
            let _ = writeln!(
                faults,
                "{package} has no row in the table of ARCHITECTURE.md"
            );
            continue;
        };
        for dependency in dependencies.difference(allowed) {
            let _ = writeln!(
                faults,
                "{package} -> {dependency} is not in ARCHITECTURE.md"
            );
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn the_architecture_names_no_arrow_that_there_is_not() {
    let arrows = arrows_of_cargo(&["normal", "build", "dev"]);
    let mut faults = String::new();
    for (package, allowed) in arrows_of_the_architecture() {
        let Some(dependencies) = arrows.get(&package) else {
            let _ = writeln!(
                faults,
                "ARCHITECTURE.md has a row for {package}, which is no crate"
            );
            continue;
        };
        for dependency in allowed.difference(dependencies) {
            let _ = writeln!(
                faults,
                "{package} -> {dependency} is in ARCHITECTURE.md alone"
            );
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn policies_depend_on_the_guest_sdk_alone() {
    for (package, dependencies) in arrows_of_cargo(&["normal", "build"]) {
        if package_is_policy(&package) {
            let sdk = BTreeSet::from(["guest-sdk".to_owned()]);
            assert_eq!(dependencies, sdk, "{package}");
        }
    }
}

#[test]
fn pure_crates_build_without_async_cloud_or_wasm() {
    let metadata = cargo_metadata();
    for package in packages(&metadata) {
        if !PURE.contains(&text(package, "name")) {
            continue;
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let name = text(dependency, "name");
            let is_shell = name.starts_with("aws-")
                || [
                    "tokio",
                    "kube",
                    "kube-client",
                    "wasmtime",
                    "rand",
                    "tracing",
                ]
                .contains(&name);
            let is_dev = dependency["kind"].as_str() == Some("dev");
            assert!(
                !is_shell || is_dev,
                "{} depends on {name}",
                text(package, "name")
            );
        }
    }
}

#[test]
fn files_are_of_readable_size() {
    let mut faults = String::new();
    for (path, source) in rust_sources() {
        let lines = source.lines().count();
        if lines > LINES_MAX {
            let _ = writeln!(faults, "{}: {lines} lines", path.display());
        }
        for (number, line) in source.lines().enumerate() {
            if line.chars().count() > COLUMNS_MAX && !line.contains('"') {
                let _ = writeln!(faults, "{}:{}: long line", path.display(), number + 1);
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// Rows of tables and code are as wide as they are.
#[test]
fn prose_is_of_readable_width() {
    let mut faults = String::new();
    let mut check = |path: &Path, number: usize, line: &str| {
        if line.chars().count() > PROSE_COLUMNS_MAX {
            let _ = writeln!(faults, "{}:{}: wide prose", path.display(), number + 1);
        }
    };
    for (path, source) in rust_sources() {
        if path.starts_with(WIDE_STILL) {
            continue;
        }
        let lines = source.lines().enumerate();
        for (number, line) in lines.filter(|(_, line)| line.trim_start().starts_with("//")) {
            check(&path, number, line);
        }
    }
    for name in PROSE {
        let text = fs::read_to_string(workspace_root().join(name)).unwrap();
        let lines = text.lines().enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.starts_with('|')) {
            check(Path::new(name), number, line);
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut faults = String::new();
    for (path, source) in rust_sources() {
        if !source.trim_start().starts_with("//!") {
            let _ = writeln!(faults, "{} does not open with `//!`", path.display());
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn entries_name_what_they_are_silent_about() {
    let mut faults = String::new();
    for (path, source) in rust_sources() {
        if !path.starts_with("host/controllers/src") || !is_of_entries(&path) {
            continue;
        }
        for (number, line) in source.lines().enumerate() {
            if line.trim_start().starts_with("_ =>") {
                let _ = writeln!(faults, "{}:{}: `_ =>`", path.display(), number + 1);
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// `entries.rs`, `scan_entry.rs` and what lies in a folder of either name.
fn is_of_entries(path: &Path) -> bool {
    let without_suffix = path.with_extension("");
    without_suffix.iter().any(|part| {
        let part = part.to_string_lossy();
        part.ends_with("entries") || part.ends_with("_entry")
    })
}

#[test]
fn reasons_of_conditions_are_written_once() {
    let mut reasons = BTreeSet::new();
    for (path, source) in rust_sources() {
        if path == Path::new("host/apis/src/conditions/reason.rs") {
            let values = source.lines().filter(|it| it.starts_with("pub const"));
            reasons.extend(values.filter_map(|it| Some(it.split('"').nth(1)?.to_owned())));
        }
    }
    assert!(reasons.len() > 30, "{}", reasons.len());
    let mut faults = String::new();
    for (path, source) in rust_sources() {
        let is_ours = ["host/controllers/src", "host/aws/src"];
        let is_ours = is_ours.iter().any(|it| path.starts_with(it));
        if !is_ours || path.components().any(|it| it.as_os_str() == "tests") {
            continue;
        }
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            for literal in line.split('"').skip(1).step_by(2) {
                if reasons.contains(literal) {
                    let _ = writeln!(faults, "{}:{}: {literal:?}", path.display(), number + 1);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn every_outcome_comes_of_something() {
    let table = "host/state/src/ledger/outcome.rs";
    let mut sources = rust_sources();
    sources.retain(|(path, _)| {
        let is_test = |it: &Path| it.components().any(|it| it.as_os_str() == "tests");
        path.starts_with("host") && !is_test(path) && !path.ends_with("tests.rs")
    });
    let (table, sources): (Vec<_>, Vec<_>) = sources
        .into_iter()
        .partition(|(path, _)| path == Path::new(table));
    let rows = table.iter().flat_map(|(_, source)| source.lines());
    let names: BTreeSet<&str> = rows
        .filter_map(|it| it.trim().split_once(" = "))
        .filter(|(_, rest)| rest.starts_with(|it: char| it.is_ascii_digit()))
        .filter(|(name, _)| name.starts_with(|it: char| it.is_ascii_uppercase()))
        .map(|(name, _)| name)
        .collect();
    assert!(names.len() > 100, "{}", names.len());
    let words: BTreeSet<&str> = sources
        .iter()
        .flat_map(|(_, source)| source.split("OutcomeId::").skip(1))
        .filter_map(|it| it.split(|it: char| !it.is_alphanumeric()).next())
        .collect();
    let dead: Vec<_> = names.difference(&words).collect();
    assert!(dead.is_empty(), "nothing makes {dead:?}");
}

#[test]
fn nothing_is_left_unfinished_or_out_of_bounds() {
    let forbidden_anywhere = ["todo!(", "unimplemented!(", "#[ignore", "dbg!("];
    let forbidden_in_pure = [
        "Instant::now(",
        "SystemTime::now(",
        "Timestamp::now(",
        "std::env::",
        "async fn",
        "tokio::",
    ];
    let mut faults = String::new();
    for (path, source) in rust_sources() {
        if path.ends_with("tests/it/tidy.rs") {
            continue;
        }
        let is_pure = PURE
            .iter()
            .any(|name| path.starts_with(format!("host/{name}/src")));
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let hits = forbidden_anywhere
                .iter()
                .chain(forbidden_in_pure.iter().filter(|_| is_pure))
                .filter(|word| code.contains(**word));
            for word in hits {
                let _ = writeln!(faults, "{}:{}: {word}", path.display(), number + 1);
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn tests_ask_for_what_they_wait_for_instead_of_sleeping() {
    // Without the parenthesis, so that importing it is found, too.
    let word = ["thread::", "sleep"].concat();
    // A program that measures: a look too many is load that it measures, and it watches for as long as it is asked to.
    let allowed = [("tests/fleet/src/cluster.rs".to_owned(), 2)];
    assert_eq!(
        uses_of(&word, "tests"),
        allowed,
        "what is waited for is asked for again until a deadline, as `becomes_true_within` does"
    );
}

#[test]
fn unsafe_code_is_only_in_the_loader_of_builtins() {
    let word = ["uns", "afe_code"].concat();
    assert_eq!(
        uses_of(&word, "host"),
        [("host/policy/src/guest/precompiled.rs".to_owned(), 1)],
        "unsafe code needs a reason that none but the loader of built-ins has"
    );
}

/// Files of a folder that have the word, and how often.
fn uses_of(word: &str, folder: &str) -> Vec<(String, usize)> {
    let sources = rust_sources().into_iter();
    sources
        .filter(|(path, source)| path.starts_with(folder) && source.contains(word))
        .map(|(path, source)| (path.display().to_string(), source.matches(word).count()))
        .collect()
}

/// The rows of the crate table: name -> crates it may depend on.
fn arrows_of_the_architecture() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| crate | may depend on |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let name = cells.next().unwrap_or_default().to_owned();
        let allowed = cells.next().unwrap_or_default();
        let allowed = allowed.split(',').map(|cell| cell.trim().to_owned());
        (name, allowed.filter(|cell| !cell.is_empty()).collect())
    })
    .collect()
}

/// The edges between members of the workspace, of some kinds of dependencies.
fn arrows_of_cargo(kinds: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let metadata = cargo_metadata();
    let members: BTreeSet<String> = packages(&metadata)
        .map(|package| text(package, "name").to_owned())
        .collect();
    packages(&metadata)
        .map(|package| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let edges = dependencies
                .filter(|it| kinds.contains(&it["kind"].as_str().unwrap_or("normal")))
                .map(|dependency| text(dependency, "name").to_owned())
                .filter(|name| members.contains(name));
            (text(package, "name").to_owned(), edges.collect())
        })
        .collect()
}

fn package_is_policy(name: &str) -> bool {
    workspace_root().join("policies").join(name).is_dir()
}

fn cargo_metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(workspace_root())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
