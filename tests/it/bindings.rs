//! Policies in a namespace of their own: for which NodePools they are, settings that lie elsewhere, and what their
//! author is told.

use serde_json::Value;
use tests::served::Served;
use tests::{has_program, run};

const NAMESPACE: &str = "mortise-policies";
/// The demo has the NodePools default and gpu.
const ONE_OF_TWO: &str = "default (1 of 2)";
const OTHERS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: mortise-policies}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: elsewhere
  namespace: mortise
  labels: {mortise.dev/policy: rank}
data: {builtin: prefer-arm64}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: greedy
  namespace: mortise-policies
  labels: {mortise.dev/policy: budgets}
  annotations: {mortise.dev/authority: replace}
data: {rule: total}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: mistyped
  namespace: mortise-policies
  labels: {mortise.dev/policy: rank}
  annotations: {mortise.dev/Mode: shadow}
data: {builtin: prefer-arm64}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: graviton-first
  namespace: mortise-policies
  labels: {mortise.dev/policy: rank}
  annotations: {mortise.dev/nodepools: 'default,defualt', mortise.dev/order: '3'}
data: {builtin: prefer-arm64, config-from: prices}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: by-team
  namespace: mortise-policies
  labels: {mortise.dev/policy: consolidation}
  annotations: {mortise.dev/nodepool-selector: team=web, mortise.dev/mode: shadow}
data: {rule: 'savings > 0.0'}
";
const PRICES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: prices, namespace: mortise-policies}
data: {discount: '0.9'}
";

/// What `mortise policy status` says of each policy of the namespace.
fn rows(served: &Served) -> Vec<Value> {
    let kubeconfig = served.kubeconfig().display().to_string();
    let arguments = [
        "policy",
        "status",
        "-o",
        "json",
        "-n",
        NAMESPACE,
        "--kubeconfig",
    ];
    let ran = run(arguments.into_iter().chain([kubeconfig.as_str()]));
    let rows: Value = serde_json::from_str(&ran.stdout()).unwrap_or_default();
    rows.as_array().cloned().unwrap_or_default()
}

fn row(served: &Served, name: &str) -> Value {
    let mut rows = rows(served).into_iter();
    rows.find(|row| row["name"] == name).unwrap_or_default()
}

#[test]
fn policies_of_a_namespace_are_told_for_what_they_are_and_why_they_are_not() {
    if !has_program("kubectl", "help") {
        return;
    }
    let mut served = Served::start(&["--no-controller"]);
    let quiet = ["--metrics-port", "0", "--health-probe-port", "0"];
    let namespace = ["controller", "--policy-namespace", NAMESPACE];
    served.also_run(&[&namespace[..], &quiet].concat());
    served.apply(OTHERS);
    served.eventually("each is looked at", || {
        let rows = rows(&served);
        rows.len() == 4 && rows.iter().all(|row| row["state"] != "Unseen")
    });
    for (name, reason, words) in [
        ("greedy", "NotAllowed", "--allow-policy-authority-replace"),
        ("mistyped", "UnknownKey", "did you mean mortise.dev/mode?"),
        ("graviton-first", "NotFound", "there is no ConfigMap prices"),
        ("by-team", "Shadowing", "savings > 0.0"),
    ] {
        let row = row(&served, name);
        assert_eq!(row["reason"], reason, "{row}");
        assert!(row["message"].as_str().unwrap().contains(words), "{row}");
    }
    served.apply(PRICES);
    served.eventually("settings that come are taken", || {
        row(&served, "graviton-first")["state"] == "Ready"
    });
    let told = row(&served, "graviton-first");
    for (field, expected) in [
        ("mode", "enforce"),
        ("appliesTo", ONE_OF_TWO),
        ("authority", "lower"),
    ] {
        assert_eq!(told[field], expected, "{told}");
    }
    assert_eq!(told["order"], 3, "{told}");
    assert_eq!(told["unmatched"][0], "defualt (did you mean default?)");
    served.eventually("an event tells of the pool", || {
        let events = served.kubectl(&["get", "events", "-n", NAMESPACE]);
        events.contains("PolicyNodePoolNotFound")
    });
    assert_eq!(row(&served, "by-team")["appliesTo"], "none of 2");
    served.kubectl(&["label", "nodepool", "default", "team=web"]);
    served.eventually("labels count at once", || {
        row(&served, "by-team")["appliesTo"] == ONE_OF_TWO
    });
    served.apply(&PRICES.replace("0.9", "none"));
    served.eventually("settings that turn bad are refused", || {
        let row = row(&served, "graviton-first");
        row["state"] == "Degraded" && row["appliesTo"] == ONE_OF_TWO
    });
    let elsewhere = served.kubectl(&[
        "get",
        "configmap",
        "elsewhere",
        "-n",
        "mortise",
        "-o",
        "yaml",
    ]);
    assert!(!elsewhere.contains("mortise.dev/status"), "{elsewhere}");
}
