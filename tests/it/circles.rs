//! No files of a crate import each other in a loop: whoever reads one can read what it stands on first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tests::sources::rust_sources;

/// A module's names from the crate's root; the root has none.
type Module = Vec<String>;
/// Each file of a crate with those it imports from, both as modules.
type Arrows = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn files_of_a_crate_import_each_other_in_no_loop() {
    let mut faults = String::new();
    for (source, files) in crates() {
        for circle in circles(&arrows_between(files)) {
            let names: Vec<_> = circle.iter().map(|module| module.join("::")).collect();
            let _ = writeln!(faults, "{}: {}", source.display(), names.join(", "));
        }
    }
    assert!(
        faults.is_empty(),
        "these files import each other; what they share belongs into a file of its own:\n{faults}"
    );
}

#[test]
fn a_loop_is_found_and_a_face_is_none() {
    let files = [
        ("a", "use crate::b::{self, B};\n"),
        ("b", "use super::c::C;\n// use crate::d::D;\n"),
        ("c", "fn f() { crate::a::f() }\n"),
        ("d", "use crate::a::A;\nuse crate::Face;\n"),
        ("", "mod a; mod b; pub use d::D;\n"),
        (
            "e",
            "use crate::d::D;\n#[cfg(test)]\nmod tests {\n    use crate::f::F;\n}\n",
        ),
        ("f", "use crate::e::E;\n"),
    ];
    let arrows = arrows_between(
        files
            .iter()
            .map(|(name, text)| (module(name), (*text).to_owned()))
            .collect(),
    );
    let found = circles(&arrows);
    assert_eq!(found, [vec![module("a"), module("b"), module("c")]]);
}

fn module(name: &str) -> Module {
    name.split("::")
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The `src` folders of the host's crates and of the policies, with their files.
fn crates() -> BTreeMap<PathBuf, BTreeMap<Module, String>> {
    let mut crates = BTreeMap::<PathBuf, BTreeMap<Module, String>>::new();
    for (path, text) in rust_sources() {
        let is_ours = ["host", "policies"].iter().any(|it| path.starts_with(it));
        let source: PathBuf = path.iter().take(3).collect();
        if is_ours && source.ends_with("src") {
            let module = module_of(path.strip_prefix(&source).unwrap());
            crates.entry(source).or_default().insert(module, text);
        }
    }
    crates
}

/// The module that a file below `src` is.
fn module_of(path: &Path) -> Module {
    let path = path.with_extension("");
    let names = path.iter().map(|it| it.to_string_lossy().into_owned());
    let mut module: Module = names.collect();
    module.pop_if(|it| ["lib", "main", "mod"].contains(&it.as_str()));
    module
}

/// What is imported is looked for in the longest module of its path. A file is the face of the folder that bears its
/// name, as the root is of the crate: that it hands on or calls its own parts is no arrow, that a part asks for
/// something of it is one. What unit tests import is none.
fn arrows_between(files: BTreeMap<Module, String>) -> Arrows {
    let modules: BTreeSet<Module> = files.keys().cloned().collect();
    let mut arrows = Arrows::new();
    for (file, text) in files {
        let production = text
            .split("\n#[cfg(test)]\nmod tests {")
            .next()
            .unwrap_or_default();
        let targets = paths(production)
            .into_iter()
            .filter_map(|path| absolute(&file, path, &modules))
            .map(|path| longest_module(path, &modules))
            .filter(|target| !target.is_empty() && !target.starts_with(&file))
            .collect();
        if !file.is_empty() {
            arrows.insert(file, targets);
        }
    }
    arrows
}

/// A path from the crate's root, of one that a file wrote; none where it leads out of the crate.
fn absolute(file: &Module, path: Vec<String>, modules: &BTreeSet<Module>) -> Option<Module> {
    let mut base = file.clone();
    let mut rest = path.into_iter().peekable();
    match rest.peek().map(String::as_str)? {
        "crate" => {
            base.clear();
            rest.next();
        }
        "self" => {
            rest.next();
        }
        "super" => {
            while rest.next_if(|part| part == "super").is_some() {
                base.pop();
            }
        }
        first => {
            let mut child = base.clone();
            child.push(first.to_owned());
            if !modules.contains(&child) {
                return None;
            }
        }
    }
    base.extend(rest);
    Some(base)
}

fn longest_module(mut path: Module, modules: &BTreeSet<Module>) -> Module {
    while !path.is_empty() && !modules.contains(&path) {
        path.pop();
    }
    path
}

/// The paths that a file imports by `use`, each branch of a tree its own, and those it writes out from `crate` or
/// `super`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for statement in code.split(';') {
        let start = statement
            .match_indices("use ")
            .map(|(at, _)| at)
            .find(|at| {
                statement[..*at].ends_with(|before: char| before.is_whitespace()) || *at == 0
            });
        match start {
            Some(at) => branches(&statement[at + 4..], &[], &mut found),
            None => written_out(statement, &mut found),
        }
    }
    found
}

fn branches(tree: &str, stem: &[String], found: &mut Vec<Vec<String>>) {
    let (head, list) = tree.split_once('{').unwrap_or((tree, ""));
    let mut path = stem.to_vec();
    let names = head.split(" as ").next().unwrap_or_default().split("::");
    path.extend(
        names
            .map(str::trim)
            .filter(|name| !name.is_empty() && *name != "*")
            .map(str::to_owned),
    );
    if list.is_empty() {
        if !path.is_empty() {
            found.push(path);
        }
        return;
    }
    let list = list.rsplit_once('}').map_or(list, |(inside, _)| inside);
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                branch_or_self(&list[start..at], &path, found);
                start = at + 1;
            }
            _ => {}
        }
    }
    branch_or_self(&list[start..], &path, found);
}

fn branch_or_self(branch: &str, stem: &[String], found: &mut Vec<Vec<String>>) {
    match branch.trim() {
        "" => {}
        "self" => found.push(stem.to_vec()),
        branch => branches(branch, stem, found),
    }
}

fn written_out(code: &str, found: &mut Vec<Vec<String>>) {
    for word in ["crate::", "super::"] {
        for (at, _) in code.match_indices(word) {
            let is_start = !code[..at]
                .ends_with(|before: char| before.is_alphanumeric() || "_:$".contains(before));
            if is_start {
                let end = code[at..]
                    .find(|letter: char| {
                        !(letter.is_alphanumeric() || letter == '_' || letter == ':')
                    })
                    .map_or(code.len(), |length| at + length);
                found.push(
                    code[at..end]
                        .split("::")
                        .filter(|name| !name.is_empty())
                        .map(str::to_owned)
                        .collect(),
                );
            }
        }
    }
}

/// The sets of files each of which leads to every other, in order.
fn circles(arrows: &Arrows) -> Vec<Vec<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = arrows
        .keys()
        .map(|from| (from, reached_from(from, arrows)))
        .collect();
    let leads = |from: &Module, to: &Module| reached.get(from).is_some_and(|all| all.contains(to));
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for file in arrows.keys() {
        if !leads(file, file) || told.contains(file) {
            continue;
        }
        let circle: Vec<Module> = arrows
            .keys()
            .filter(|other| leads(file, other) && leads(other, file))
            .cloned()
            .collect();
        told.extend(circle.iter().cloned());
        found.push(circle);
    }
    found
}

fn reached_from<'a>(from: &Module, arrows: &'a Arrows) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&Module> = arrows.get(from).into_iter().flatten().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(arrows.get(file).into_iter().flatten());
        }
    }
    reached
}
