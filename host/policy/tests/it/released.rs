//! Guests built against each released version of the interface: what runs once goes on running.

use std::fs;
use std::path::Path;

use policy::{BUILTINS, BindingState};

use crate::support::{host, key, module};

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
