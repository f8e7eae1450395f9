//! A type's name means one thing in the whole host: whoever meets it in one crate knows it in every other.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tests::sources::rust_sources;
use tests::workspace_root;

/// Names that several files may declare, each for itself: the stages of a controller, as STYLE.md has them. Who
/// declares one has a `decide` that takes the one and answers the other.
const STAGES: [&str; 3] = ["Observed", "Decided", "Step"];

#[test]
fn a_type_name_means_one_thing() {
    let mut faults = String::new();
    for (name, files) in declared() {
        if STAGES.contains(&name.as_str()) {
            for file in &files {
                let text = fs::read_to_string(workspace_root().join(file)).unwrap();
                if !text.contains("fn decide(") {
                    let _ = writeln!(faults, "{name}: no stage of {}", file.display());
                }
            }
        } else if files.len() > 1 {
            let _ = writeln!(faults, "{name}:");
            for file in &files {
                let _ = writeln!(faults, "    {}", file.display());
            }
        }
    }
    assert!(
        faults.is_empty(),
        "these names are declared in several files; each wants one of its own:\n{faults}"
    );
}

#[test]
fn what_a_file_declares_is_found_and_what_its_tests_declare_is_not() {
    let text = "\
//! Struct Nothing { }
pub(crate) struct Pod<'a> {
    kind: Kind,
}
pub enum Kind { A }
type Pods = Vec<Pod>;
impl Iterator for Pods {
    type Item = Pod;
}
fn f() {
    struct Inner;
}
#[cfg(test)]
mod tests {
    struct Rig;
}
";
    let found: Vec<&str> = names_of(text).collect();
    assert_eq!(found, ["Pod", "Kind", "Pods", "Inner"]);
}

/// Type names with the files of the host that declare them, outside tests.
fn declared() -> BTreeMap<String, BTreeSet<PathBuf>> {
    let mut names = BTreeMap::<String, BTreeSet<PathBuf>>::new();
    for (path, text) in rust_sources().into_iter().filter(|it| is_production(&it.0)) {
        for name in names_of(&text) {
            let files = names.entry(name.to_owned()).or_default();
            files.insert(path.clone());
        }
    }
    names
}

/// Whether a file is in the `src` of one of the host's crates, and of no tests.
fn is_production(path: &Path) -> bool {
    let is_tests = |it: &OsStr| it == "tests" || it == "tests.rs";
    path.starts_with("host")
        && path.iter().nth(2) == Some(OsStr::new("src"))
        && !path.iter().any(is_tests)
}

/// The types that a file declares before its tests; those that an `impl` names are the trait's.
fn names_of(text: &str) -> impl Iterator<Item = &str> {
    let production = text
        .split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    production.lines().filter_map(|line| {
        let code = line.trim_start();
        let is_indented = code.len() < line.len();
        let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        let mut word = words.next()?;
        if word == "pub" {
            let visibility = ["", "crate", "super", "self", "in"];
            word = words.find(|it| !visibility.contains(it))?;
        }
        let declares = match word {
            "struct" | "enum" | "trait" | "union" => true,
            "type" => !is_indented,
            _ => false,
        };
        let name = words.find(|it| !it.is_empty());
        name.filter(|_| declares)
    })
}
