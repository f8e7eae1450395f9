//! A type's name means one thing in the whole host: whoever meets it in one crate knows it in every other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

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
    let root = workspace_root();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("host")).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut files);
    }
    let mut names = BTreeMap::<String, BTreeSet<PathBuf>>::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let path = file.strip_prefix(&root).unwrap();
        for name in names_of(&text) {
            names
                .entry(name.to_owned())
                .or_default()
                .insert(path.to_owned());
        }
    }
    names
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

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
