//! Stock kubectl against a demo that serves its API: the tables, scaling to nothing, policies swapped in flight.

use std::process::Command;

use tests::has_program;
use tests::served::{Served, WEB};

const PREFER_ARM64: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: graviton-first
  namespace: mortise
  labels: {mortise.dev/policy: rank}
data:
  builtin: prefer-arm64
  config: '{\"discount\": 0.9}'
";

fn status(served: &Served, config_map: &str) -> String {
    served
        .try_kubectl(&[
            "get",
            "configmap",
            config_map,
            "-n",
            "mortise",
            "-o",
            "jsonpath={.metadata.annotations.mortise\\.dev/status}",
        ])
        .unwrap_or_default()
}

#[test]
fn nodes_come_with_the_pods_and_go_with_them() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let served = Served::start(&["-f", empty.to_str().unwrap()]);
    served.apply(WEB);
    served.eventually("the pods run", || served.running("web-") == 6);
    let table = served.kubectl(&["get", "nodepools,nodeclaims,ec2nodeclasses,nodes"]);
    for column in [
        "NODECLASS",
        "NODES",
        "READY",
        "TYPE",
        "CAPACITY",
        "ZONE",
        "NODE",
        "AGE",
        "VERSION",
    ] {
        assert!(table.contains(column), "no column {column} in\n{table}");
    }
    assert!(
        served
            .kubectl(&["describe", "nodeclaims"])
            .contains("Launched")
    );
    assert!(
        served
            .kubectl(&["explain", "nodepool.spec.disruption"])
            .contains("consolidateAfter")
    );
    let node = served.kubectl(&["get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"]);
    for (change, wanted) in [
        (&["a=x:PreferNoSchedule", "b=x:PreferNoSchedule"][..], "a b"),
        (&["a-"], "b"),
        (&["b-"], ""),
    ] {
        served.kubectl(&[&["taint", "node", &node], change].concat());
        let keys = "jsonpath={.spec.taints[*].key}";
        let left = served.kubectl(&["get", "node", &node, "-o", keys]);
        assert_eq!(left, wanted, "{change:?}");
    }
    served.kubectl(&["scale", "deployment", "web", "--replicas", "0"]);
    served.eventually("the nodes are gone", || {
        served.items("nodes").is_empty() && served.items("nodeclaims").is_empty()
    });
}

#[test]
fn a_second_process_drives_the_world_over_http() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let mut served = Served::start(&["--no-controller", "-f", empty.to_str().unwrap()]);
    served.also_run(&[
        "controller",
        "--metrics-port",
        "0",
        "--health-probe-port",
        "0",
    ]);
    served.apply(WEB);
    served.eventually("the pods run", || served.running("web-") == 6);
    served.kubectl(&["delete", "deployment", "web"]);
    served.eventually("the nodes are gone", || served.items("nodes").is_empty());
}

#[test]
fn policies_are_swapped_in_flight_and_a_bad_one_is_refused() {
    if !has_program("kubectl", "help") {
        return;
    }
    let empty = workload_free();
    let served = Served::start(&["-f", empty.to_str().unwrap()]);
    served.apply(PREFER_ARM64);
    served.eventually("the policy is in charge", || {
        status(&served, "graviton-first").contains("Ready")
    });
    served.apply(&WEB.replace("name: web", "name: arm"));
    served.eventually("a launch was ranked", || {
        !served.items("nodeclaims").is_empty()
    });
    served.eventually("the pods run", || served.running("arm-") == 6);
    for node in served.items("nodes") {
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/arch"], "arm64");
    }

    let truncated =
        &std::fs::read(tests::workspace_root().join("host/policy/builtin/prefer-arm64.wasm"))
            .unwrap()[..2000];
    let file = std::env::temp_dir().join(format!("mortise-truncated-{}.wasm", std::process::id()));
    std::fs::write(&file, truncated).unwrap();
    served.kubectl(&[
        "create",
        "configmap",
        "broken",
        "-n",
        "mortise",
        &format!("--from-file=policy.wasm={}", file.display()),
    ]);
    served.kubectl(&[
        "label",
        "configmap",
        "broken",
        "-n",
        "mortise",
        "mortise.dev/policy=rank",
    ]);
    served.eventually("the module is refused", || {
        status(&served, "broken").contains("Degraded")
    });
    served.eventually("an event says why", || {
        served
            .kubectl(&["get", "events", "-n", "mortise"])
            .contains("PolicyRejected")
    });
    served.kubectl(&[
        "delete",
        "configmap",
        "graviton-first",
        "broken",
        "-n",
        "mortise",
    ]);
    served.apply(&WEB.replace("name: web", "name: after"));
    served.eventually("decisions go on", || served.running("after-") == 6);
}

/// A manifest without workloads, so that a test brings its own.
/// A manifest that applies no workload.
pub(crate) fn workload_free() -> std::path::PathBuf {
    let file = std::env::temp_dir().join(format!("mortise-empty-{}.yaml", std::process::id()));
    std::fs::write(
        &file,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n",
    )
    .unwrap();
    file
}

#[test]
fn help_and_version_read_well() {
    let output = Command::new(tests::mortise())
        .arg("--help")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["demo", "controller", "crds"] {
        assert!(text.contains(word), "{text}");
    }
}
