//! `mortise demo` as people run it: what it prints, how it ends, whether it repeats itself.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use tests::{Finished, foreign_manifests, mortise, run, workspace_root};

fn demo(arguments: &[&str]) -> Finished {
    run(
        ["demo", "--speed", "max", "--until", "settled", "-o", "json"]
            .iter()
            .chain(arguments),
    )
}

fn manifest(name: &str, text: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("mortise-{}-{name}.yaml", std::process::id()));
    fs::write(&file, text).unwrap();
    file
}

fn node_types(summary: &Value) -> Vec<&str> {
    let nodes = summary["nodes"].as_array().unwrap();
    nodes
        .iter()
        .map(|node| node["instanceType"].as_str().unwrap())
        .collect()
}

#[test]
fn the_samples_run_and_what_is_not_needed_goes_away() {
    let finished = demo(&[]);
    let summary = finished.summary();
    assert!(finished.is_success(), "{summary:#}");
    assert_eq!(summary["pods"]["pending"], 0);
    assert_eq!(summary["leakedInstances"], 0);
    // The GPU job ends, and its instance with it.
    assert!(summary["terminations"].as_u64().unwrap() > 0);
    assert!(
        node_types(&summary)
            .iter()
            .all(|name| !name.starts_with('g') && !name.starts_with('p'))
    );
    let policies: Vec<&str> = summary["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|policy| policy["kind"].as_str().unwrap())
        .collect();
    for kind in ["rank", "consolidation", "budgets"] {
        assert!(
            policies.contains(&kind),
            "no {kind} policy was asked: {policies:?}"
        );
    }
}

#[test]
fn a_run_tells_how_its_first_stage_went_and_what_simulate_plans_at_the_same_prices() {
    let pods = manifest(
        "planned",
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 40
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 900m, memory: 3Gi}}}]}
",
    );
    let file = pods.to_str().unwrap();
    let plan = run(["simulate", "-o", "json", "--seed", "3", "-f", file]).summary();
    let summary = demo(&["--seed", "3", "-f", file]).summary();
    let full = &summary["allRunning"];
    assert_eq!(full["pods"], 40, "{summary:#}");
    assert_eq!(
        (&full["evictions"], &summary["evictions"]),
        (&0.into(), &0.into())
    );
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
    let slowest = number(&full["slowestPod"], "seconds");
    assert!(
        full["slowestPod"]["pod"]
            .as_str()
            .unwrap()
            .starts_with("default/web-")
    );
    let boot = number(full, "slowestBootSeconds");
    assert!(
        boot >= 22.0 && slowest >= boot && slowest <= number(full, "seconds"),
        "{full:#}"
    );
    assert!(number(&summary, "cpuSeconds") > 0.0);
    // The plan is bought at its own price, where no pool of the first choice is dry.
    let ratio = number(full, "pricePerHour") / number(&plan, "pricePerHour");
    assert!((0.99..1.1).contains(&ratio), "{ratio}");
    let bound = number(&plan, "pricePerHour") / number(&plan, "lowerBoundPerHour");
    assert!((1.0..1.5).contains(&bound), "{bound}");
}

#[test]
fn one_seed_gives_one_ledger_and_another_seed_another() {
    let hash = |seed| demo(&["--pods", "120", "--seed", seed]).summary()["ledgerHash"].clone();
    let first = hash("7");
    assert_eq!(first, hash("7"));
    assert_ne!(first, hash("8"));
}

#[test]
fn a_scale_down_to_a_tenth_settles_soon_and_costs_what_the_rest_costs_afresh() {
    let folder = workspace_root().join("tests/scale-down");
    let file = |name: &str| folder.join(name).display().to_string();
    let pool = file("nodes-of-16-cpu.yaml");
    let scaled = |name: &str, from: &str, to: &str| {
        let text = fs::read_to_string(folder.join("5000-pods.yaml")).unwrap();
        let replicas = |n: &str| format!("replicas: {n}");
        assert!(text.contains(&replicas(from)));
        let path = manifest(name, &text.replace(&replicas(from), &replicas(to)));
        path.display().to_string()
    };
    let (many, few) = (scaled("600", "5000", "600"), scaled("60", "5000", "60"));
    let finished = demo(&["-f", &pool, "-f", &many, "--then", &few]);
    let summary = finished.summary();
    assert!(finished.is_success(), "{summary:#}");
    let [_, after] = &summary["stages"].as_array().unwrap()[..] else {
        panic!("two stages: {summary:#}");
    };
    assert_eq!(after["pods"]["running"], 60);
    // Commands wait 15 seconds for their second look, pods end gracefully, and then EC2 takes half a minute.
    let settled = after["settledSeconds"].as_f64().unwrap();
    assert!(settled < 90.0, "{after:#}");
    let afresh = demo(&["-f", &pool, "-f", &few]).summary();
    let bill = |it: &Value| it["pricePerHour"].as_f64().unwrap();
    assert!(bill(after) <= bill(&afresh) * 1.05, "{after:#} {afresh:#}");
}

#[test]
fn real_manifests_run_on_real_types() {
    let names = [
        "online-boutique.yaml",
        "kube-prometheus.yaml",
        "vllm-and-cockroachdb.yaml",
    ];
    let files: Option<Vec<PathBuf>> = names.into_iter().map(foreign_manifests).collect();
    let Some(files) = files else { return };
    let arguments: Vec<String> = files
        .iter()
        .flat_map(|file| ["-f".to_owned(), file.display().to_string()])
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let finished = demo(&arguments);
    let summary = finished.summary();
    assert_eq!(summary["pods"]["pending"], 0, "{summary:#}");
    assert_eq!(summary["leakedInstances"], 0);
    // One of the files is of a time when budgets were in policy/v1beta1, which no API server serves any more.
    let problems = summary["problems"].as_array().unwrap();
    assert!(
        problems
            .iter()
            .all(|problem| problem.as_str().unwrap().contains("policy/v1beta1")),
        "{problems:?}"
    );
    assert!(
        node_types(&summary)
            .iter()
            .any(|name| name.starts_with('g') || name.starts_with('p')),
        "no GPU instance"
    );
}

#[test]
fn a_pod_that_never_fits_is_named_and_the_rest_runs() {
    let file = manifest(
        "giant",
        "
apiVersion: v1
kind: Pod
metadata: {name: giant}
spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 100000}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: small}
spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 100m}}}]}
",
    );
    let finished = demo(&["-f", file.to_str().unwrap()]);
    let summary = finished.summary();
    assert!(!finished.is_success());
    assert_eq!(summary["pods"]["running"], 1);
    assert_eq!(summary["pods"]["pending"], 1);
    let problems = summary["problems"].to_string();
    assert!(
        problems.contains("default/giant") && problems.contains("cpu"),
        "{problems}"
    );
}

#[test]
fn faulty_documents_are_named_with_object_and_field_and_the_rest_goes_on() {
    let file = manifest("faulty", "
apiVersion: v1
kind: Pod
metadata: {name: fine}
spec: {containers: [{name: main, image: example, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: broken
---
apiVersion: v1
kind: Pod
metadata: {name: negative}
spec: {containers: [{name: main, image: example, resources: {requests: {cpu: \"-1\"}}}]}
---
apiVersion: example.com/v1
kind: Unheard
metadata: {name: of}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: odd}
spec:
  weight: 1000
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: plain}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}
");
    let finished = demo(&["-f", file.to_str().unwrap()]);
    assert!(!finished.is_success());
    let summary = finished.summary();
    assert_eq!(summary["pods"]["running"], 1, "{summary:#}");
    let problems = summary["problems"].to_string();
    for word in ["negative", "requests", "Unheard", "odd", "weight"] {
        assert!(problems.contains(word), "no `{word}` in {problems}");
    }
}

#[test]
fn a_node_pool_without_its_node_class_says_so() {
    let file = manifest("classless", "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: classless}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nowhere}}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits}
spec: {containers: [{name: main, image: example}]}
");
    let finished = demo(&["-f", file.to_str().unwrap()]);
    assert!(!finished.is_success());
    let problems = finished.summary()["problems"].to_string();
    assert!(
        problems.contains("classless") && problems.contains("nowhere"),
        "{problems}"
    );
}

#[test]
fn arguments_that_make_no_sense_name_the_way_out() {
    for (arguments, word) in [
        (vec!["demo", "--until", "soon"], "settled"),
        (vec!["demo", "--listen", "0.0.0.0:0"], "127.0.0.1"),
        (
            vec!["demo", "--listen", "127.0.0.1:0", "--speed", "max"],
            "--speed",
        ),
        (
            vec!["demo", "--then", "x.yaml", "--until", "5m"],
            "leave --until away",
        ),
        (vec!["demo", "--then", "no-such.yaml"], "--then"),
        (vec!["crds", "nothing-like-it"], "mortise crds"),
        (vec!["iam", "--cluster-name=demo"], "--account"),
        (
            vec![
                "iam",
                "--cluster-name=demo",
                "--format=terraform",
                "--region=us-east-1",
            ],
            "where it is deployed",
        ),
        (vec!["iam", "--cluster-name=d${e}mo"], "letters, digits"),
    ] {
        let finished = run(&arguments);
        assert!(!finished.is_success(), "{arguments:?}");
        assert!(
            finished.stderr().contains(word),
            "{arguments:?}: {}",
            finished.stderr()
        );
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    // `crds` prints more than a pipe holds.
    let mut child = Command::new(mortise())
        .arg("crds")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{error}");
}
