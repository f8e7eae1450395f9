//! A scenario for each policy of the shelf, `policies/*/scenario.yaml`: one input, what is decided without the
//! policy, and what is decided with it.

use std::fs;

use policy::{BUILTINS, Cases, PolicyHost};
use serde_json::Value;

use crate::support::{builtin, host};

/// Not on the shelf: what the scenarios of the others begin with.
const DEFAULTS: [&str; 3] = ["default-rank", "default-consolidation", "default-budgets"];

pub(crate) fn kind(scenario: &Value) -> (&'static str, &'static str) {
    match ["offerings", "nodes", "pools"].map(|it| !scenario[it].is_null()) {
        [true, false, false] => ("rank", "default-rank"),
        [false, true, false] => ("consolidation", "default-consolidation"),
        [false, false, true] => ("budgets", "default-budgets"),
        _ => panic!("asks nothing, or of several kinds: {scenario}"),
    }
}

/// The case that expects what stands under `key`.
pub(crate) fn case(scenario: &Value, key: &str) -> Cases {
    let mut case = scenario.clone();
    let fields = case.as_object_mut().unwrap();
    let default = fields.remove("default").unwrap();
    if key == "default" {
        fields.remove("config");
        fields.insert("expect".to_owned(), default);
    }
    Cases::parse(&Value::Array(vec![case]).to_string()).unwrap()
}

fn check(host: &PolicyHost, cases: &Cases, (kind, policy): (&str, &str)) {
    for outcome in cases.run(host, &builtin("it", kind, policy)) {
        let (name, faults) = (outcome.name, outcome.faults);
        assert!(faults.is_empty(), "{policy}: {name}: {faults:#?}");
    }
}

#[test]
fn every_policy_of_the_shelf_changes_a_decision_for_the_reason_it_is_there() {
    let host = host();
    for policy in BUILTINS.iter().map(|it| it.name) {
        if DEFAULTS.contains(&policy) {
            continue;
        }
        let file = format!("../../policies/{policy}/scenario.yaml");
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
        let scenarios: Vec<Value> = serde_saphyr::from_str(&text).unwrap();
        assert!(!scenarios.is_empty(), "{file}");
        for scenario in &scenarios {
            let (kind, default) = kind(scenario);
            assert_ne!(scenario["default"], scenario["expect"], "{file}");
            check(&host, &case(scenario, "default"), (kind, default));
            check(&host, &case(scenario, "expect"), (kind, policy));
        }
    }
}
