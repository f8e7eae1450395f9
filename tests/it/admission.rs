//! The chart's ValidatingAdmissionPolicy on a real API server: it refuses what the controller refuses, as far as it can
//! know, and lets in the rest. The cases are those of the policy host.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tests::kubernetes::{kubectl_with_warnings, minor_version, test_cluster};
use tests::served::becomes_true_within;
use tests::{has_program, workspace_root};

const NAMESPACE: &str = "mortise-policies";
const ACCOUNT: &str = "system:serviceaccount:mortise:mortise";
/// API servers load an admission policy some time after it was written.
const PATIENCE: Duration = Duration::from_mins(1);

/// What `helm template` makes of the chart's admission policy.
fn admission_policy() -> String {
    let output = Command::new("helm")
        .args(["template", "mortise"])
        .arg(workspace_root().join("charts/mortise"))
        .args(["--namespace", "mortise"])
        .args(["--show-only", "templates/policy-validation.yaml"])
        // Without a cluster helm assumes the version that it was built with.
        .args(["--kube-version", "1.30.0"])
        .args([
            "--api-versions",
            "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
        ])
        .args(["--set", "settings.clusterName=demo"])
        .args(["--set", &format!("settings.policyNamespace={NAMESPACE}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn config_map(case: &Value, namespace: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "it",
            "namespace": namespace,
            "labels": case["labels"],
            "annotations": case["annotations"],
        },
        "data": case["data"],
        "binaryData": case["binaryData"],
    })
    .to_string()
}

#[test]
fn the_api_server_refuses_what_the_controller_would() {
    let Some(kubeconfig) = test_cluster("the admission policy") else {
        return;
    };
    if !has_program("kubectl", "help") || !has_program("helm", "version") {
        return;
    }
    if minor_version(&kubeconfig) < 30 {
        eprintln!(
            "skipped: the API server has no admission policies, which Kubernetes 1.30 began with"
        );
        return;
    }
    let cluster =
        |arguments: &[&str], input: &str| kubectl_with_warnings(&kubeconfig, arguments, input);
    let create = ["create", "--dry-run=server", "-f", "-"];
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let apply = ["apply", "--server-side", "-f", "-"];
    cluster(&apply, &namespace.to_string()).unwrap();
    cluster(&apply, &admission_policy()).unwrap();

    let cases = workspace_root().join("host/policy/tests/bindings.yaml");
    let cases = std::fs::read_to_string(cases).unwrap();
    let cases: Vec<Value> = serde_saphyr::from_str(&cases).unwrap();
    let mistyped = cases
        .iter()
        .find(|it| it["reason"] == "UnknownKey")
        .unwrap();
    let mistyped = config_map(mistyped, NAMESPACE);
    let refuses = || cluster(&create, &mistyped).is_err();
    assert!(
        becomes_true_within(PATIENCE, refuses),
        "the policy refuses nothing"
    );
    for case in &cases {
        let answer = cluster(&create, &config_map(case, NAMESPACE));
        let is_refused = match case["refused_by"].as_str() {
            Some("controller") => false,
            Some(_) => true,
            None => case["says"].is_string(),
        };
        assert_eq!(answer.is_err(), is_refused, "{}: {answer:?}", case["case"]);
    }

    // The controller writes its status onto what was there before the policy was.
    let as_controller = [
        "create",
        "--dry-run=server",
        "--as",
        ACCOUNT,
        "--as-group",
        "system:masters",
        "-f",
        "-",
    ];
    cluster(&as_controller, &mistyped).unwrap();
    let elsewhere = cluster(&create, &config_map(&cases[0], "default")).unwrap();
    assert!(
        elsewhere.contains("this one decides nothing"),
        "{elsewhere}"
    );
}
