//! The chart's definitions are those the types make.

use std::fs;
use std::path::Path;

#[test]
fn chart_holds_the_definitions_the_types_make() {
    let folder = Path::new("../../charts/mortise/crds");
    let mut expected = Vec::new();
    for crd in apis::crd::all() {
        let name = apis::crd::file_name(&crd);
        let text = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            text == apis::crd::yaml(&crd).unwrap(),
            "charts/mortise/crds/{name} is stale: run `cargo run -p apis --example crds -- charts/mortise/crds`"
        );
        expected.push(name);
    }
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(
        found, expected,
        "the folder holds one file for each kind and no other"
    );
}
