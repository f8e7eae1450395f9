//! ARCHITECTURE.md against the tree: files that it names are there.

use std::fs;
use std::path::{Path, PathBuf};

use tests::sources::rust_sources;
use tests::workspace_root;

/// The heading of the table of where to change what.
const TABLE: &str = "| I want to change |";

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|it| it == "rs")
}

/// The Rust files that a text names between backticks, and the other paths among them, by which those are read.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|it| is_rust(it) || it.contains('/'))
}

/// Where a path of a cell leads: from the root, or from the file or folder named last, from the folder of that file,
/// or from one above it in the same crate.
fn led_to(path: &str, last: Option<&Path>) -> Option<PathBuf> {
    let is_there = |it: &Path| workspace_root().join(it).exists();
    let from_root = PathBuf::from(path);
    if is_there(&from_root) {
        return Some(from_root);
    }
    let last = last?;
    let own_folder = last.with_extension("");
    let above = last.ancestors().skip(1).take_while(|it| {
        let crates = ["host", "tests", "guest-sdk", "policies", ""];
        !crates.iter().any(|name| *it == Path::new(name))
    });
    let mut folders = [last, own_folder.as_path()].into_iter().chain(above);
    folders.find_map(|it| Some(it.join(path)).filter(|it| is_there(it)))
}

/// What is wrong with the second cell of a row.
fn faults(row: &str) -> Vec<String> {
    let cell = row.trim_matches('|').split_once('|').unwrap_or_default().1;
    let mut last = None;
    let mut faults = Vec::new();
    for path in paths(cell) {
        match led_to(path, last.as_deref()) {
            Some(found) => last = Some(found),
            None if is_rust(path) => faults.push(format!("{path} in {row}")),
            None => {}
        }
    }
    faults
}

#[test]
fn where_to_change_what_names_files_that_are_there() {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().skip_while(|it| !it.starts_with(TABLE)).skip(2);
    let rows: Vec<&str> = rows.take_while(|it| it.starts_with('|')).collect();
    assert!(rows.len() > 60, "{} rows", rows.len());
    let faults: Vec<String> = rows.iter().flat_map(|row| faults(row)).collect();
    assert!(faults.is_empty(), "there is no {}", faults.join("\nno "));
}

/// Prose names a file by as much of its path as tells it from others: its end.
#[test]
fn prose_names_files_that_are_there() {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).unwrap();
    let (prose, _) = text.split_once(TABLE).unwrap();
    let sources = rust_sources();
    let named: Vec<&str> = paths(prose).filter(|it| is_rust(it)).collect();
    assert!(named.len() > 15, "{named:?}");
    let is_there = |path: &&&str| sources.iter().any(|(it, _)| it.ends_with(path));
    let dead: Vec<_> = named.iter().filter(|it| !is_there(it)).collect();
    assert!(dead.is_empty(), "{dead:?}");
}

#[test]
fn a_path_is_read_against_what_its_cell_named_before() {
    let row = |cell: &str| faults(&format!("| x | {cell} |"));
    let quiet: [&str; 4] = [
        "`host/disruption/src/appraisal.rs`, `consolidation/price.rs`",
        "`host/disruption/src/consolidation.rs` and its folder: `guards.rs`",
        "`host/disruption/src/consolidation/guards.rs`, `scan.rs`",
        "`host/problem-file/src`, `check.rs`",
    ];
    for cell in quiet {
        assert_eq!(row(cell), Vec::<String>::new());
    }
    for cell in ["`nowhere.rs`", "`host/disruption/src/scan.rs`, `none.rs`"] {
        assert_eq!(row(cell).len(), 1, "{cell}");
    }
}
