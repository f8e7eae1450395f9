//! Problem files as users write them: what is read, what is refused, and in which words.

use proptest::prelude::*;
use rstest::rstest;
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, solve};
use serde_json::{Value, json};
use state::pod_disruption_budget::PdbVerdict;

use super::*;

fn good() -> Value {
    json!({
        "pods": [{
            "metadata": {"name": "web-1", "labels": {"app": "web"}},
            "spec": {
                "nodeSelector": {"topology.kubernetes.io/zone": "a"},
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}],
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
                    ]}},
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [
                            {"key": "app", "operator": "In", "values": ["web"]},
                        ]}},
                    ]},
                },
                "tolerations": [{"key": "x", "operator": "Exists", "effect": "NoSchedule"}],
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }],
            },
        }],
        "nodePools": [{
            "metadata": {"name": "default"},
            "spec": {
                "limits": {"cpu": "100"},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}],
                }},
            },
        }],
        "nodes": [{"metadata": {"name": "old"}, "status": {"allocatable": {"cpu": "100m", "pods": "10"}}}],
    })
}

fn types() -> Value {
    let offering = |zone: &str, price: f64| {
        json!({"Price": price, "Available": true, "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
        ]})
    };
    json!([{
        "name": "m.large", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": "4", "memory": "16Gi", "pods": "58"},
        "offerings": [offering("a", 0.1), offering("b", 0.05)],
        "labels": {"example.com/size": "large"},
    }])
}

/// Sets (or with null removes) what the pointer names.
fn set(document: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    match document.pointer_mut(parent).unwrap() {
        Value::Array(list) => list[key.parse::<usize>().unwrap()] = value,
        Value::Object(map) if value.is_null() => {
            map.remove(&key);
        }
        Value::Object(map) => {
            map.insert(key, value);
        }
        other => panic!("{parent} is {other}"),
    }
}

fn report(problem: Value, types: Value) -> AnswerReport {
    let world = FileWorld::from_value(problem).unwrap();
    let types = InstanceTypes::from_value(types).unwrap();
    let question = world.question(&types, Options::default());
    let solution = solve(&question.problem, &PriceRank, &Interrupt::never());
    AnswerReport::new(&world, &question, &solution)
}

#[test]
fn a_good_problem_is_solved_and_reported() {
    let report = report(good(), types());
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.pods, report.placed, report.nodes), (1, 1, 1));
    let claim = &report.claims[0];
    assert_eq!(claim.pods, ["default/web-1"]);
    let chosen = (
        claim.instance_type.as_str(),
        claim.zone.as_str(),
        claim.capacity_type.as_str(),
    );
    assert_eq!(chosen, ("m.large", "a", "spot"));
    assert!((report.price_per_hour - 0.1).abs() < 1e-9);
}

#[test]
fn the_stream_and_the_tree_read_the_same() {
    let mut problem = good();
    set(&mut problem, "/pods/0/spec/surprise", json!(1));
    let mut bound = good()["pods"][0].clone();
    set(&mut bound, "/metadata/name", json!("db-1"));
    set(&mut bound, "/spec/nodeName", json!("old"));
    // The model keeps since when there are pods of an owner.
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "db", "uid": "rs", "controller": true});
    set(&mut bound, "/metadata/ownerReferences", json!([owner]));
    set(&mut problem, "/boundPods", json!([bound]));
    let now = "2026-01-01T00:00:00Z";
    let lists = problem.to_string();
    let (open, close) = (&lists[..lists.len() - 1], &lists[1..]);
    set(&mut problem, "/now", json!(now));
    let parsed = FileWorld::from_value(problem).unwrap();
    assert_eq!(parsed.now, Some(now.parse().unwrap()));
    // Objects are taken in as of that moment, wherever a file tells it.
    for text in [
        format!(r#"{{"now":"{now}",{close}"#),
        format!(r#"{open},"now":"{now}"}}"#),
    ] {
        let streamed = FileWorld::read(&text).unwrap();
        assert_eq!(streamed.warnings, parsed.warnings);
        assert_eq!(streamed.warnings, ["pods[0].spec.surprise: unknown field"]);
        assert_eq!(streamed.now, parsed.now);
        let model = |world: &FileWorld| format!("{:?}", world.snapshot());
        assert_eq!(model(&streamed), model(&parsed), "{text}");
    }
}

#[rstest]
#[case(
    "nonsense",
    "not the JSON of such a file: expected ident at line 1 column 2"
)]
#[case(
    "[]",
    "not the JSON of such a file: invalid type: sequence, expected a problem file, which is an object"
)]
#[case(
    r#"{"pod": []}"#,
    r#"unknown key "pod", expected one of pods, boundPods,"#
)]
#[case(r#"{"pods": {"a": 1}}"#, r#"pods: expected a list, found {"a":1}"#)]
#[case(
    r#"{"now": "soon"}"#,
    r#"now: expected a time such as 2026-01-01T00:00:00Z, found "soon""#
)]
fn files_of_another_form_are_refused(#[case] text: &str, #[case] message: &str) {
    let error = FileWorld::read(text).unwrap_err().to_string();
    assert!(error.starts_with(message), "{error}");
}

const TERM: &str = "/pods/0/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0";
const SELECTOR: &str = "/pods/0/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchExpressions/0";

#[rstest]
#[case("/pods/0/spec/containers/0/resources/requests/cpu", json!("-1"), r#"spec.containers[0].resources.requests[cpu]: "-1": must not be negative"#)]
#[case("/pods/0/spec/containers/0/resources/requests/cpu", json!("one"), r#"spec.containers[0].resources.requests[cpu]: invalid quantity "one""#)]
#[case("/pods/0/spec/containers/0/resources/limits", json!({"cpu": "500m"}), r#"requests[cpu]: "1": is more than the limit "500m""#)]
#[case("/pods/0/spec/containers", json!([]), "spec.containers: is empty")]
#[case("/pods/0/spec/containers", json!("web"), r#"spec.containers: invalid type: string "web", expected a sequence"#)]
#[case("/pods/0/spec/containers/0/name", json!(7), "spec.containers[0].name: invalid type: integer `7`, expected a string")]
#[case("/pods/0/spec", Value::Null, "spec: is not set")]
#[case("/pods/0/kind", json!("Job"), r#"kind: invalid value: string "Job", expected Pod"#)]
#[case(&format!("{TERM}/operator"), json!("Near"), r#"matchExpressions[0].operator: "Near": unknown operator"#)]
#[case(TERM, json!({"key": "n", "operator": "Gte", "values": ["1"]}), r#"matchExpressions[0].operator: "Gte": unknown operator"#)]
#[case(TERM, json!({"key": "n", "operator": "Lte", "values": ["1"]}), r#"matchExpressions[0].operator: "Lte": unknown operator"#)]
#[case(&format!("{TERM}/values"), json!([]), "matchExpressions[0].values: []: In of kubernetes.io/arch needs values")]
#[case(TERM, json!({"key": "n", "operator": "Gt", "values": ["many"]}), r#"values: ["many"]: Gt of n needs one integer"#)]
#[case(
    TERM,
    json!({"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]}),
    "spec: no node can be both topology.kubernetes.io/zone In [a] and topology.kubernetes.io/zone NotIn [a]"
)]
#[case(&format!("{SELECTOR}/operator"), json!("Like"), r#"labelSelector.matchExpressions[0].operator: "Like": unknown operator"#)]
#[case(&format!("{SELECTOR}/values"), json!([]), "labelSelector.matchExpressions[0].values: In needs values")]
#[case("/pods/0/spec/tolerations/0/operator", json!("Some"), r#"spec.tolerations[0].operator: "Some": unknown operator"#)]
#[case("/pods/0/spec/tolerations/0/effect", json!("Never"), r#"spec.tolerations[0].effect: "Never": unknown effect"#)]
#[case("/pods/0/spec/topologySpreadConstraints/0/maxSkew", json!(0), "spec.topologySpreadConstraints[0].maxSkew: 0: must be greater than zero")]
#[case("/pods/0/spec/topologySpreadConstraints/0/topologyKey", json!(""), "spec.topologySpreadConstraints[0].topologyKey: is not set")]
fn a_faulty_pod_is_named_with_its_field_and_value(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] expected: &str,
) {
    let mut problem = good();
    set(&mut problem, pointer, value);
    let report = report(problem, types());
    assert_eq!((report.placed, report.errors), (0, 1), "{report:?}");
    let error = &report.pod_errors["default/web-1"];
    assert_eq!(error.reason, "Invalid");
    assert!(error.message.contains(expected), "{}", error.message);
    let fault = &report.faults[0];
    assert!(fault.starts_with("pods[0] (default/web-1): "), "{fault}");
    assert!(fault.contains(expected), "{fault}");
}

const POOL: &str = "/nodePools/0/spec/template/spec/requirements/0";

#[rstest]
#[case("/nodePools/0/spec/limits/cpu", json!("lots"), r#"spec.limits[cpu]: invalid quantity "lots""#)]
#[case("/nodePools/0/spec/weight", json!(0), "spec.weight: 0: must be between 1 and 100")]
#[case(&format!("{POOL}/values"), json!([]), "operator In must have a value defined")]
#[case(&format!("{POOL}/minValues"), json!(51), "spec.template.spec.requirements[0].minValues: 51: must be between 1 and 50")]
#[case("/nodePools/0/spec/template/metadata", json!({"labels": {"karpenter.sh/capacity-type": "on-demand"}}), "no node can be both")]
fn a_faulty_pool_takes_no_part_and_says_why(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] expected: &str,
) {
    let mut problem = good();
    set(&mut problem, pointer, value);
    let report = report(problem, types());
    assert_eq!((report.placed, report.errors), (0, 1), "{report:?}");
    assert!(
        report.pool_errors["default"].contains(expected),
        "{report:?}"
    );
    assert!(
        report.faults[0].starts_with("nodePools[0] (default): "),
        "{report:?}"
    );
}

#[rstest]
#[case("50%", &[])]
#[case("off", &[])]
#[case("20", &[
    r#"nodePools[0].metadata.annotations[mortise.dev/max-premium]: "20" is no premium: use a share such as 50% or 100%, or off"#,
])]
fn a_bound_on_premiums_that_cannot_be_read_is_told(#[case] bound: &str, #[case] expected: &[&str]) {
    let mut problem = good();
    let annotations = json!({"mortise.dev/max-premium": bound});
    set(
        &mut problem,
        "/nodePools/0/metadata/annotations",
        annotations,
    );
    let world = FileWorld::from_value(problem).unwrap();
    assert_eq!(world.warnings, expected);
    assert!(world.faults.is_empty(), "{:?}", world.faults);
}

#[rstest]
#[case("/0/offerings", json!([]), "offerings: is empty: the type cannot be bought")]
#[case("/0/offerings/1/Price", json!(-0.1), "offerings[1].Price: -0.1: must be between 0 and 1000000 USD an hour")]
#[case("/0/offerings/1/Price", json!("NaN"), r#"offerings[1].Price: invalid type: string "NaN", expected f64"#)]
#[case("/0/offerings/0/Requirements/0/operator", json!("Is"), r#"offerings[0].Requirements[0].operator: "Is": unknown operator"#)]
#[case("/0/offerings/0/Requirements/0/values/0", json!("sport"), r#"offerings[0].Requirements: "sport": capacity is bought on-demand, spot or reserved"#)]
#[case("/0/offerings/0/Requirements/0/values/0", json!("reserved"), "offerings[0].ReservationCapacity: is not set: of reserved capacity it says how many instances may be launched")]
#[case("/0/offerings/0/Requirements", json!([]), "offerings[0].Requirements: nothing says its topology.kubernetes.io/zone")]
#[case("/0/resources/cpu", json!("-4"), r#"resources[cpu]: "-4": must not be negative"#)]
#[case("/0/resources", Value::Null, "missing field `resources`")]
fn a_faulty_instance_type_is_left_out_and_named(
    #[case] pointer: &str,
    #[case] value: Value,
    #[case] expected: &str,
) {
    let mut list = types();
    set(&mut list, pointer, value);
    for types in [
        InstanceTypes::read(&list.to_string()).unwrap(),
        InstanceTypes::from_value(list).unwrap(),
    ] {
        assert!(types.types.is_empty());
        let fault = types.faults[0].to_string();
        assert!(fault.starts_with("instanceTypes[0] (m.large)"), "{fault}");
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn pods_may_ask_for_labels_that_only_the_types_know() {
    let mut problem = good();
    let wish = json!({"example.com/size": "large"});
    set(&mut problem, "/pods/0/spec/nodeSelector", wish);
    assert_eq!(report(problem.clone(), types()).placed, 1);
    let wish = json!({"example.com/size": "small"});
    set(&mut problem, "/pods/0/spec/nodeSelector", wish);
    assert_eq!(report(problem, types()).placed, 0);
}

#[test]
fn two_objects_of_one_name_are_a_fault() {
    let mut problem = good();
    let pod = problem["pods"][0].clone();
    set(&mut problem, "/boundPods", json!([pod]));
    let report = report(problem, types());
    let fault = "metadata.name: is the name of an earlier object of the same kind";
    assert!(
        report.faults.iter().any(|it| it.ends_with(fault)),
        "{report:?}"
    );
}

#[test]
fn bound_pods_fill_their_node_and_pending_ones_use_what_is_left() {
    let mut problem = good();
    set(
        &mut problem,
        "/nodes/0/status/allocatable",
        json!({"cpu": "2", "memory": "8Gi", "pods": "10"}),
    );
    let labels = json!({"topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "amd64"});
    set(&mut problem, "/nodes/0/metadata/labels", labels);
    let on_the_node = report(problem.clone(), types());
    assert_eq!(on_the_node.existing[0].node, "old");
    assert_eq!(on_the_node.nodes, 0);
    let mut neighbour = problem["pods"][0].clone();
    set(&mut neighbour, "/metadata/name", json!("db-1"));
    set(&mut neighbour, "/metadata/labels", json!({}));
    set(&mut neighbour, "/spec/nodeName", json!("old"));
    set(
        &mut neighbour,
        "/spec/containers/0/resources/requests/cpu",
        json!("1500m"),
    );
    set(&mut problem, "/boundPods", json!([neighbour]));
    assert_eq!(report(problem, types()).nodes, 1);
}

#[rstest]
#[case(json!({"minAvailable": 2}), None, PdbVerdict::Free)]
#[case(json!({"minAvailable": "80%"}), None, PdbVerdict::Blocked("default/web".to_owned()))]
#[case(json!({"maxUnavailable": 1}), None, PdbVerdict::Free)]
#[case(json!({"maxUnavailable": i32::MIN}), None, PdbVerdict::Blocked("default/web".to_owned()))]
#[case(json!({"maxUnavailable": 1}), Some(0), PdbVerdict::Blocked("default/web".to_owned()))]
fn a_budget_that_nobody_looked_at_allows_what_its_running_pods_leave(
    #[case] mut spec: Value,
    #[case] told: Option<i32>,
    #[case] verdict: PdbVerdict,
) {
    spec["selector"] = json!({"matchLabels": {"app": "web"}});
    let mut budget = json!({"metadata": {"name": "web"}, "spec": spec});
    if let Some(allowed) = told {
        budget["status"] = json!({
            "disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 3, "expectedPods": 3,
        });
    }
    let mut problem = good();
    let pod = problem["pods"][0].clone();
    let bound = |name: &str| {
        let mut pod = pod.clone();
        set(&mut pod, "/metadata/name", json!(name));
        set(&mut pod, "/spec/nodeName", json!("old"));
        pod
    };
    set(
        &mut problem,
        "/boundPods",
        json!([bound("a"), bound("b"), bound("c")]),
    );
    set(&mut problem, "/pods", json!([]));
    set(&mut problem, "/podDisruptionBudgets", json!([budget]));
    let snapshot = FileWorld::from_value(problem).unwrap().snapshot();
    let pod = snapshot.pod(&PodKey::new("default", "a")).unwrap();
    assert_eq!(snapshot.pdbs().verdict(pod), verdict);
}

/// Every pointer to a value of the document.
fn pointers(document: &Value, at: &str, all: &mut Vec<String>) {
    match document {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                all.push(path.clone());
                pointers(value, &path, all);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                let path = format!("{at}/{index}");
                all.push(path.clone());
                pointers(value, &path, all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        Just(json!(true)),
        any::<i64>().prop_map(|it| json!(it)),
        any::<f64>().prop_map(|it| json!(it)),
        "[a-zA-Z0-9./%-]{0,12}".prop_map(|it| json!(it)),
        prop::sample::select(vec![
            "-1",
            "0",
            "1e99",
            "9223372036854775807",
            "1Ei",
            "In",
            "NotIn",
            "Exists",
            "DoesNotExist",
            "Gt",
            "Lte",
            "a",
            "karpenter.sh/nodepool",
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
        ])
        .prop_map(|it| json!(it)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever stands where in a file, the answer is a report or an error, and every pod is accounted for.
    #[test]
    fn no_file_makes_it_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..4),
        of_types in any::<bool>(),
    ) {
        let (mut problem, mut list) = (good(), types());
        for (index, value) in changes {
            let target = if of_types { &mut list } else { &mut problem };
            let mut all = Vec::new();
            pointers(target, "", &mut all);
            if all.is_empty() {
                break;
            }
            if let Some(found) = target.pointer_mut(index.get::<String>(&all)) {
                *found = value;
            }
        }
        let streamed = FileWorld::read(&problem.to_string());
        let parsed = FileWorld::from_value(problem);
        prop_assert_eq!(streamed.is_ok(), parsed.is_ok());
        let Ok(types) = InstanceTypes::from_value(list) else { return Ok(()) };
        for world in [streamed, parsed].into_iter().flatten() {
            let question = world.question(&types, Options::default());
            let solution = solve(&question.problem, &PriceRank, &Interrupt::never());
            let report = AnswerReport::new(&world, &question, &solution);
            prop_assert_eq!(report.pods, report.placed + report.errors);
            prop_assert!(report.price_per_hour.is_finite());
        }
    }
}
