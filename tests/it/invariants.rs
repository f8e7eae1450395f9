//! The list of invariants against what judges them: no number is judged that has no sentence, and none is listed that
//! nobody judges. Judges no world itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use tests::sources::rust_sources;
use tests::workspace_root;

/// The numbers of invariants in a text, each a capital I and two digits that stand alone.
fn numbers(text: &str) -> BTreeSet<&str> {
    let words = text.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let is_number = |word: &&str| {
        let digits = word.strip_prefix('I').unwrap_or_default();
        digits.len() == 2 && digits.bytes().all(|it| it.is_ascii_digit())
    };
    words.filter(is_number).collect()
}

/// Of each number in the list: the files that judge it.
fn listed(list: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut listed = BTreeMap::new();
    for line in list.lines().filter(|it| it.starts_with("| I")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, sentence, files] = cells[..] else {
            panic!("a row has three cells: {line}");
        };
        assert!(!sentence.is_empty(), "{number} says nothing");
        let files = files.split('`').skip(1).step_by(2).collect();
        let twice = listed.insert(number, files);
        assert!(twice.is_none(), "{number} stands twice");
    }
    listed
}

#[test]
fn every_invariant_has_a_sentence_and_a_judge() {
    let list = fs::read_to_string(workspace_root().join("tests/invariants.md")).unwrap();
    let listed = listed(&list);
    let sources = rust_sources();
    let mut faults = Vec::new();
    for (path, source) in &sources {
        let unlisted = numbers(source).into_iter();
        let unlisted = unlisted.filter(|it| !listed.contains_key(it));
        faults.extend(unlisted.map(|it| format!("{}: {it} is not listed", path.display())));
    }
    for (number, files) in &listed {
        assert!(!files.is_empty(), "nobody judges {number}");
        for file in files {
            let source = sources.iter().find(|(path, _)| path == Path::new(file));
            if !source.is_some_and(|(_, source)| numbers(source).contains(number)) {
                faults.push(format!("{file} does not judge {number}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_number_stands_alone() {
    let told = numbers("I01: I2, I100, xI03, I04_ and \"I05: {x}\"");
    assert_eq!(told, BTreeSet::from(["I01", "I05"]));
}
