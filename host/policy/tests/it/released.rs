//! Guests built against each released version of the interface: what runs once goes on running.

use std::fs;
use std::path::Path;

use policy::{BUILTINS, BindingState};
use scheduling::ranking::{RankHook, UsageTable};

use crate::support::{annotated, builtin, host, key, module, round};

/// One folder for each version, one guest for each kind.
const RELEASED: &str = "tests/released";
const KINDS: [&str; 3] = ["rank", "consolidation", "budgets"];

#[test]
fn guests_of_every_released_interface_are_let_in_and_answer() {
    let host = host();
    for entry in fs::read_dir(RELEASED).unwrap() {
        let version = entry.unwrap().path();
        for kind in KINDS {
            let file = version.join(kind).with_extension("wasm");
            let guest =
                fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let status = host.apply(&module("old", kind, guest));
            assert_eq!(
                status.state,
                BindingState::Ready,
                "{}: {status:?}",
                file.display()
            );
            let found = host.conformance(&key("old"), 24);
            assert!(found.is_ok(), "{}: {found:?}", file.display());
        }
    }
}

/// Both are in force: the older one first, which is told of nodes in use as it knew them, then one of today.
#[test]
fn guests_of_two_versions_work_in_one_chain() {
    let old = fs::read(Path::new(RELEASED).join("0.1.0/rank.wasm")).unwrap();
    let alone = host();
    alone.apply(&module("old", "rank", old.clone()));
    let by_old = alone.rank(&round()).rankings.swap_remove(0).scores;
    assert_ne!(by_old, round().table.price, "the old guest changes nothing");
    let host = host();
    for (source, order) in [
        (module("old", "rank", old), "1"),
        (builtin("new", "rank", "node-overhead"), "2"),
    ] {
        let status = host.apply(&annotated(source, "order", order));
        assert_eq!(status.state, BindingState::Ready, "{status:?}");
    }
    let answer = host.rank(&round());
    let outcomes = answer
        .uses
        .iter()
        .map(|it| (it.name.as_str(), it.outcome.as_str()));
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes, [("old", "ok"), ("new", "ok")]);
    for (found, old) in answer.rankings[0].scores.iter().zip(by_old) {
        assert!((found - old - 0.01).abs() < 1e-12, "{found} {old}");
    }
}

/// `commit-ledger` as it was when a table had the column `in-use`.
#[test]
fn an_older_guest_is_told_of_nodes_in_use() {
    let file = Path::new(RELEASED).join("0.1.0/commit-ledger.wasm");
    let mut source = module("ledger", "rank", fs::read(file).unwrap());
    let config = "commitments: [{family: m7g, nodes: 5, discount: 0.5}]";
    source.data.insert("config".to_owned(), config.to_owned());
    let host = host();
    assert_eq!(host.apply(&source).state, BindingState::Ready);
    for (nodes, expected) in [(4, 0.055), (5, 0.11)] {
        let mut at = round();
        // Of two pools; the other zone's and the spot nodes are not on the offering.
        at.usage = UsageTable {
            nodepool: vec![0, 1, 0],
            instance_type: vec![5, 5, 5],
            family: vec![7, 7, 7],
            zone: vec![8, 8, 8],
            capacity_type: vec![0, 0, 1],
            nodes: vec![1, nodes - 1, 9],
            launching: vec![0, 0, 0],
            price: vec![0.1, 0.1, 0.1],
        };
        let score = host.rank(&at).rankings[0].scores[1];
        assert!((score - expected).abs() < 1e-12, "{nodes}: {score}");
    }
}

#[test]
fn the_present_version_of_the_interface_has_its_guests() {
    let wit = fs::read_to_string("../../wit/policy.wit").unwrap();
    let package = wit
        .lines()
        .find_map(|line| line.strip_prefix("package mortise:policy@"));
    let version = package.unwrap().trim_end_matches(';');
    assert!(Path::new(RELEASED).join(version).is_dir(), "{version}");
}

#[test]
fn each_policy_of_the_shelf_is_short_tested_and_told_of() {
    let told = fs::read_to_string("../../policies/README.md").unwrap();
    for name in BUILTINS.iter().map(|it| it.name) {
        let source = fs::read_to_string(format!("../../policies/{name}/src/lib.rs")).unwrap();
        assert!(source.lines().count() <= 150, "{name} has grown");
        assert!(source.contains("#[cfg(test)]"), "{name} has no tests");
        assert!(
            told.contains(&format!("| `{name}` |")),
            "{name} is not in the README"
        );
    }
}
