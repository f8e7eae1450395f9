//! The components in the repository are built from the sources beside them.

#[path = "../../../../guest-sdk/examples/build-policies/sources.rs"]
mod sources;

use std::path::Path;

use sha2::{Digest, Sha256};

#[test]
fn built_in_components_are_as_new_as_their_sources() {
    let repository = Path::new("../..").canonicalize().unwrap();
    let folder = repository.join("host/policy/builtin");
    let manifest = std::fs::read_to_string(folder.join("MANIFEST")).unwrap();
    for builtin in policy::BUILTINS {
        let line = manifest
            .lines()
            .find(|line| line.split(' ').next() == Some(builtin.name))
            .unwrap_or_else(|| panic!("{} is not in builtin/MANIFEST", builtin.name));
        let component = std::fs::read(folder.join(format!("{}.wasm", builtin.name))).unwrap();
        let expected = format!(
            "{} {} {}",
            builtin.name,
            sources::digest(&repository, builtin.name).unwrap(),
            sources::hex(&Sha256::digest(&component)),
        );
        assert_eq!(
            line, expected,
            "run `cargo run -p guest-sdk --example build-policies`"
        );
        assert!(
            component.len() <= 72_000,
            "{} has {} bytes",
            builtin.name,
            component.len()
        );
    }
}
