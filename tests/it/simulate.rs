//! `mortise simulate` as people run it: both forms of input, what is printed, and the exit code.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::{Finished, foreign_manifests, run};

fn file(name: &str, content: &str) -> PathBuf {
    let file = std::env::temp_dir().join(format!("mortise-simulate-{}-{name}", std::process::id()));
    fs::write(&file, content).unwrap();
    file
}

fn simulate(arguments: &[&str]) -> Finished {
    run(["simulate"].iter().chain(arguments))
}

fn pod(name: &str, cpu: &str) -> Value {
    let requests = json!({"cpu": cpu, "memory": "1Gi"});
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": requests}}]},
    })
}

fn problem(pods: &[Value]) -> Value {
    json!({
        "pods": pods,
        "nodePools": [{
            "metadata": {"name": "default"},
            "spec": {"template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                    {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
                ],
            }}},
        }],
    })
}

/// Two sizes of one family: a small one and one that costs three times as much.
fn types() -> Value {
    let size = |name: &str, cpu: &str, price: f64| {
        json!({
            "name": name, "architecture": "amd64", "operatingSystems": ["linux"],
            "resources": {"cpu": cpu, "memory": "16Gi", "pods": "20"},
            "labels": {"karpenter.k8s.aws/instance-category": "m"},
            "offerings": [{"Price": price, "Available": true, "Requirements": [
                {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
            ]}],
        })
    };
    json!([size("m1.small", "2", 0.1), size("m1.large", "4", 0.3)])
}

fn solve(name: &str, problem: &Value, types: &Value, more: &[&str]) -> Finished {
    let problem = file(&format!("{name}.json"), &problem.to_string());
    let types = file(&format!("{name}-types.json"), &types.to_string());
    let (problem, types) = (problem.to_str().unwrap(), types.to_str().unwrap());
    let arguments = [
        "--problem",
        problem,
        "--instance-types",
        types,
        "-o",
        "json",
    ];
    simulate(&[arguments.as_slice(), more].concat())
}

#[test]
fn a_problem_file_is_solved_with_the_types_of_another() {
    let finished = solve(
        "good",
        &problem(&[pod("a", "1500m"), pod("b", "1500m")]),
        &types(),
        &[],
    );
    let answer = finished.summary();
    assert_eq!(finished.exit_code(), Some(0), "{answer:#}");
    assert_eq!(answer["placed"], 2);
    assert_eq!(answer["nodes"], 2);
    let price = answer["pricePerHour"].as_f64().unwrap();
    assert!((price - 0.2).abs() < 1e-9, "{price}");
    assert_eq!(answer["claims"][0]["instanceType"], "m1.small");
    assert!(answer["totalSeconds"].as_f64().unwrap() > 0.0);
    assert!(answer["peakRssBytes"].as_u64().unwrap() > 0);
}

#[test]
fn what_cannot_be_placed_is_explained_and_the_rest_is_placed() {
    let pods = [pod("fits", "1"), pod("giant", "64")];
    let finished = solve("giant", &problem(&pods), &types(), &["--explain"]);
    let answer = finished.summary();
    assert_eq!(finished.exit_code(), Some(1), "{answer:#}");
    assert_eq!(
        (&answer["placed"], &answer["errors"]),
        (&json!(1), &json!(1))
    );
    let error = &answer["podErrors"]["default/giant"];
    assert_eq!(error["reason"], "Resources");
    assert!(
        error["nearestMiss"].as_str().unwrap().contains("m1.large"),
        "{error}"
    );
    let pool = &answer["explanations"][0]["pools"][0];
    assert_eq!(pool["nodePool"], "default");
    let funnel = pool["funnel"].as_array().unwrap();
    assert_eq!(funnel[0]["left"], 2);
    assert_eq!(funnel.last().unwrap()["left"], 0);
}

#[test]
fn input_that_cannot_be_used_is_told_apart_from_objects_that_are_faulty() {
    let mut bad = problem(&[pod("a", "-1"), pod("b", "1")]);
    let finished = solve("faulty", &bad, &types(), &[]);
    let answer = finished.summary();
    assert_eq!(finished.exit_code(), Some(1));
    assert_eq!(answer["placed"], 1);
    let fault = answer["faults"][0].as_str().unwrap();
    assert!(
        fault.contains("pods[0] (default/a)") && fault.contains("-1"),
        "{fault}"
    );
    bad["podz"] = json!([]);
    let finished = solve("unusable", &bad, &types(), &[]);
    assert_eq!(finished.exit_code(), Some(2));
    assert!(finished.stderr().contains("podz"), "{}", finished.stderr());
}

#[test]
fn without_types_the_catalogue_of_ec2_is_used() {
    let problem = file("catalogue.json", &problem(&[pod("a", "1")]).to_string());
    let finished = simulate(&["--problem", problem.to_str().unwrap(), "-o", "json"]);
    let answer = finished.summary();
    assert_eq!(finished.exit_code(), Some(0), "{answer:#}");
    assert!(answer["claims"][0]["instanceTypeOptions"].as_u64().unwrap() > 100);
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("no EC2NodeClass was given"), "{warnings}");
}

/// A node of the pool with its claim and one pod, far too large for it.
fn add_running_node(problem: &mut Value, name: &str) {
    let mut labels = json!({
        "karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": "m1.large", "topology.kubernetes.io/zone": "a",
        "karpenter.sh/capacity-type": "on-demand", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    labels["kubernetes.io/hostname"] = json!(name);
    let amounts = json!({"cpu": "3900m", "memory": "15Gi", "pods": "20"});
    let mut pod = pod(&format!("on-{name}"), "500m");
    pod["spec"]["nodeName"] = json!(name);
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true}]);
    let mut push = |list: &str, object: Value| {
        if problem[list].is_null() {
            problem[list] = json!([]);
        }
        problem[list].as_array_mut().unwrap().push(object);
    };
    push("boundPods", pod);
    push(
        "nodes",
        json!({
            "metadata": {"name": name, "labels": labels},
            "status": {
                "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
            },
        }),
    );
    push(
        "nodeClaims",
        json!({
            "metadata": {"name": format!("{name}-claim"), "labels": labels},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [],
            },
            "status": {"nodeName": name, "capacity": amounts, "allocatable": amounts},
        }),
    );
}

#[test]
fn a_running_cluster_is_consolidated_step_by_step() {
    let mut problem = problem(&[]);
    problem["nodePools"][0]["spec"]["disruption"] =
        json!({"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]});
    for name in ["n1", "n2"] {
        add_running_node(&mut problem, name);
    }
    let once = solve("once", &problem, &types(), &["--disruption"]);
    let answer = once.summary();
    assert_eq!(once.exit_code(), Some(0), "{answer:#}");
    assert_eq!(answer["nodes"], 2);
    assert_eq!(
        answer["commands"].as_array().unwrap().len(),
        1,
        "{answer:#}"
    );
    assert_eq!(answer["commands"][0]["reason"], "Underutilized");
    assert_eq!(answer["outcomes"].as_object().unwrap().len(), 2);
    let stable = solve(
        "stable",
        &problem,
        &types(),
        &["--disruption", "--until-stable"],
    )
    .summary();
    let price = |answer: &Value, of: &str| answer[of].as_f64().unwrap();
    assert!(
        (price(&stable, "pricePerHourBefore") - 0.6).abs() < 1e-9,
        "{stable:#}"
    );
    // One small node holds both pods.
    assert!(
        (price(&stable, "pricePerHourAfter") - 0.1).abs() < 1e-9,
        "{stable:#}"
    );
    assert!(stable["loops"].as_u64().unwrap() >= 2, "{stable:#}");
}

#[test]
fn a_sick_node_is_repaired_in_a_simulation_too_where_the_gate_is_open() {
    let mut problem = problem(&[]);
    problem["nodePools"][0]["spec"]["disruption"] =
        json!({"consolidateAfter": "Never", "budgets": [{"nodes": "100%"}]});
    for name in ["n1", "n2", "n3", "n4", "n5"] {
        add_running_node(&mut problem, name);
    }
    problem["nodes"][1]["status"]["conditions"] = json!([{"type": "Ready", "status": "False",
        "lastTransitionTime": "2020-01-01T00:00:00Z"}]);
    for (gates, expected) in [("NodeRepair=true", 1), ("NodeRepair=false", 0)] {
        let arguments = ["--disruption", "--feature-gates", gates];
        let answer = solve("sick", &problem, &types(), &arguments).summary();
        let commands = answer["commands"].as_array().unwrap();
        assert_eq!(commands.len(), expected, "{answer:#}");
        for command in commands {
            assert_eq!(command["reason"], "Unhealthy");
            assert_eq!(command["remove"], json!(["n2"]));
        }
    }
}

const WORKLOADS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  completions: 4
  parallelism: 4
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: asleep}
spec:
  replicas: 0
  selector: {matchLabels: {app: asleep}}
  template:
    metadata: {labels: {app: asleep}}
    spec:
      nodeSelector: {kubernetes.io/arch: arm64}
      containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]
---
apiVersion: v1
kind: Node
metadata: {name: old, labels: {kubernetes.io/arch: amd64, kubernetes.io/os: linux, topology.kubernetes.io/zone: us-east-1a}}
status: {capacity: {cpu: "2", memory: 8Gi, pods: "20"}, conditions: [{type: Ready, status: "True"}]}
"#;

#[test]
fn workloads_of_manifests_are_expanded_and_nodes_among_them_are_used() {
    let manifests = file("workloads.yaml", WORKLOADS);
    let finished = simulate(&["-f", manifests.to_str().unwrap(), "-o", "json"]);
    let answer = finished.summary();
    assert_eq!(finished.exit_code(), Some(0), "{answer:#}");
    assert_eq!(answer["pods"], 9, "{answer:#}");
    assert_eq!(answer["existing"][0]["node"], "old");
    assert!(
        answer["warnings"]
            .to_string()
            .contains("no NodePool was given")
    );
    let asleep = &answer["scaledToZero"][0];
    assert_eq!(asleep["workload"], "Deployment default/asleep");
    assert_eq!(asleep["isPlaceable"], true);
}

#[test]
fn workloads_go_where_their_pool_is_and_the_others_are_explained() {
    let Some(folder) = foreign_manifests("karpenter-examples") else {
        return;
    };
    let finished = simulate(&["-f", folder.to_str().unwrap(), "-o", "json", "--explain"]);
    let answer = finished.summary();
    assert_eq!(answer["errors"], 0, "{answer:#}");
    assert!(answer["placed"].as_u64().unwrap() >= 72, "{answer:#}");
    let asleep = answer["scaledToZero"].as_array().unwrap();
    let of = |name: &str| {
        let is_it = |it: &&Value| it["workload"] == format!("Deployment default/{name}");
        asleep.iter().find(is_it).unwrap()
    };
    assert_eq!(of("zone-spread")["isPlaceable"], true);
    for name in ["gpu-amd", "gpu-nvidia", "neuron"] {
        assert_eq!(of(name)["isPlaceable"], false, "no pool has such devices");
        assert!(!of(name)["message"].as_str().unwrap().is_empty());
    }
}
