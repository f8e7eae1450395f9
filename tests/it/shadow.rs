//! Mortise beside an autoscaler that runs: what it counts of both, and that it only reads.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tests::served::{Served, WEB};
use tests::wire::Wire;
use tests::{has_program, mortise};

use crate::kubectl::workload_free;

/// Starts a shadow that ends by itself with a report.
fn shadow(kubeconfig: &Path, arguments: &[&str]) -> Child {
    let child = Command::new(mortise())
        .args(["shadow", "-o", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    child.unwrap()
}

fn report(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = serde_json::from_str(&text);
    assert!(output.status.success(), "{}: {said}{text}", output.status);
    report.unwrap_or_else(|error| panic!("{error}: {said}{text}"))
}

#[test]
fn a_shadow_follows_the_load_counts_both_and_writes_nothing() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let served = Served::start(&["-f", empty.to_str().unwrap()]);
    served.apply(WEB);
    served.eventually("the pods run", || served.running("web-") == 6);
    let start = served.items("nodeclaims").len();
    let (wire, kubeconfig) = Wire::of_kubeconfig(&served.kubeconfig(), "shadow");
    let child = shadow(&kubeconfig, &["--for", "75s"]);
    served.eventually("pods are watched", || {
        let asked = wire.asked();
        asked
            .iter()
            .any(|it| it.path.contains("/pods?") && it.path.contains("watch=true"))
    });
    served.kubectl(&["scale", "deployment/web", "--replicas=80"]);
    served.eventually("more pods run", || served.running("web-") == 80);
    let report = report(child);

    let asked = wire.asked();
    let changes: Vec<_> = asked.iter().filter(|it| it.is_change()).collect();
    assert!(changes.is_empty(), "{changes:?}");
    let nameless = asked.iter().find(|it| !it.is_by("shadow"));
    assert!(nameless.is_none(), "{nameless:?}");
    assert_eq!(report["requests"]["refused"], 0, "{report:#}");
    assert_eq!(report["unread"], serde_json::json!([]), "{report:#}");
    assert_eq!(report["notes"], serde_json::json!([]), "{report:#}");
    for side in ["karpenter", "mortise"] {
        let sum = &report[side];
        let number = |field: &str| sum[field].as_f64().unwrap();
        let launched = number("launches");
        assert!(launched >= 1.0, "{side}: {report:#}");
        let left = start as f64 + launched - number("terminations");
        assert!((number("nodes") - left).abs() < 0.5, "{side}: {report:#}");
        assert!(number("usdPerHour") > 0.0, "{side}: {report:#}");
        assert!(number("pendingPods") < 0.5, "{side}: {report:#}");
        assert!(
            number("pendingPodSeconds") > 74.0,
            "pods waited for their nodes, {side}: {report:#}"
        );
    }
    let pools = report["nodePools"].as_array().unwrap();
    assert_eq!(pools.len(), 1, "{report:#}");
    assert_eq!(pools[0]["nodePool"], "default");
}

#[test]
fn a_cluster_without_nodepools_is_told_what_mortise_would_buy() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let served = Served::start(&["--no-controller", "-f", empty.to_str().unwrap()]);
    served.kubectl(&["delete", "nodepools", "--all"]);
    served.apply(WEB);
    let report = report(shadow(
        &served.kubeconfig(),
        &["--for", "25s", "--seed", "7"],
    ));
    assert_eq!(report["karpenter"]["nodes"], 0, "{report:#}");
    assert_eq!(report["karpenter"]["pendingPods"], 6, "{report:#}");
    assert!(
        report["mortise"]["launches"].as_u64() >= Some(1),
        "{report:#}"
    );
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.starts_with("the cluster has no NodePool"), "{note}");
}

#[test]
fn what_cannot_be_asked_ends_with_two() {
    let folder = std::env::temp_dir().join(format!("mortise-shadow-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let missing = folder.join("missing");
    let nobody = folder.join("nobody");
    std::fs::write(
        &nobody,
        "\
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}]
contexts: [{name: x, context: {cluster: x, user: x}}]
users: [{name: x, user: {token: t}}]
",
    )
    .unwrap();
    for (file, why) in [(missing, "cannot be used"), (nobody, "does not answer")] {
        let file = file.to_str().unwrap();
        let finished = tests::run(["shadow", "--for", "1s", "--kubeconfig", file]);
        assert_eq!(finished.exit_code(), Some(2), "{}", finished.stderr());
        assert!(finished.stderr().contains(why), "{}", finished.stderr());
    }
    let rbac = tests::run(["shadow", "--rbac"]);
    assert!(
        rbac.is_success() && rbac.stdout().contains("kind: ClusterRole"),
        "{}",
        rbac.stdout()
    );
    std::fs::remove_dir_all(folder).unwrap();
}
