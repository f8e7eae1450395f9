//! The keys of a binding are the same in the host, in the table that people read and in the chart's admission policy.

use std::collections::BTreeSet;
use std::fs;

use policy::{BINDING_ANNOTATIONS, BINDING_BINARY_DATA, BINDING_DATA, BINDING_LABELS};

fn set<'a>(keys: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    keys.into_iter().map(str::to_owned).collect()
}

/// What stands between two marks, at every second place.
fn between(text: &str, mark: char) -> BTreeSet<String> {
    set(text.split(mark).skip(1).step_by(2))
}

#[test]
fn the_table_for_people_has_a_row_for_each_key() {
    let readme = fs::read_to_string("../../policies/README.md").unwrap();
    let table = readme.split("| key | where |").nth(1).unwrap();
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let keys: BTreeSet<String> = rows
        .flat_map(|row| between(row.split('|').nth(1).unwrap(), '`'))
        .collect();
    let known = BINDING_LABELS
        .into_iter()
        .chain(BINDING_ANNOTATIONS)
        .chain(BINDING_DATA)
        .chain(BINDING_BINARY_DATA);
    assert_eq!(keys, set(known));
}

#[test]
fn the_api_server_lets_in_what_the_controller_reads() {
    let chart = "../../charts/mortise/templates/policy-validation.yaml";
    let chart = fs::read_to_string(chart).unwrap();
    for (variable, known) in [
        ("labels", &BINDING_LABELS[..]),
        ("annotations", &BINDING_ANNOTATIONS),
        ("data", &BINDING_DATA),
    ] {
        let start = format!("${variable} := list");
        let list = chart.split(&start).nth(1).unwrap();
        let list = list.split("}}").next().unwrap();
        assert_eq!(between(list, '"'), set(known.iter().copied()), "{variable}");
    }
    for key in BINDING_BINARY_DATA {
        let ending = key.trim_start_matches("policy.wasm");
        assert!(
            ending.is_empty() || chart.contains(&ending.replace('.', "[.]")),
            "{key}"
        );
    }
}

#[test]
fn the_chart_sets_what_the_controller_reads_and_mounts_what_it_writes() {
    let chart = "../../charts/mortise/templates";
    let helpers = fs::read_to_string(format!("{chart}/_settings.tpl")).unwrap();
    let settings = helpers.split("$env := dict").nth(1).unwrap();
    let settings = settings.split("}}").next().unwrap();
    let names = settings.lines().filter_map(|line| {
        let name = line.trim().strip_prefix('"')?;
        name.split_once('"').map(|(name, _)| name.to_owned())
    });
    let names: BTreeSet<String> = names.collect();
    let flags = [
        "../operator/src/options.rs",
        "../controllers/src/settings.rs",
        "../aws/src/options.rs",
    ];
    let options = flags.map(|file| fs::read_to_string(file).unwrap()).concat();
    let parts = options.split("env = \"").skip(1);
    let known = set(parts.map(|it| it.split('"').next().unwrap()));
    let unknown: Vec<&String> = names.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for name in ["MORTISE_POLICY_RECORDS", "MORTISE_POLICY_RECORDS_SIZE"] {
        assert!(names.contains(name), "{name}");
    }
    let deployment = fs::read_to_string(format!("{chart}/deployment.yaml")).unwrap();
    let mount = deployment.split("\"mountPath\" \"").nth(1).unwrap();
    let mount = mount.split('"').next().unwrap();
    assert!(
        settings.contains(&format!("\"MORTISE_POLICY_RECORDS\" (ternary \"{mount}/")),
        "{mount}"
    );
}
