//! Nodes are replaced, and not before their pods allow it; sick ones are repaired.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Cluster, is_true, names};

#[test]
fn a_drifted_node_goes_when_its_pod_may_be_disrupted_and_its_successor_is_there() {
    let Some(cluster) = Cluster::start("mortise-test-drift") else {
        return;
    };
    let controller = cluster.controller("one");
    cluster.deploy(1, &json!({"karpenter.sh/do-not-disrupt": "true"}));
    cluster.until("the pod runs", || cluster.running() == 1);
    let first = names(&cluster.owned("nodeclaims"));
    cluster
        .patch_pool(&json!({"spec": {"template": {"metadata": {"labels": {"round": "second"}}}}}));
    cluster.until("the claim is drifted", || {
        let claims = cluster.owned("nodeclaims");
        claims.iter().any(|it| is_true(it, "Drifted"))
    });
    cluster.stays("the pod and its node", Duration::from_secs(20), || {
        names(&cluster.owned("nodeclaims")) == first && cluster.running() == 1
    });

    let allowed = "karpenter.sh/do-not-disrupt-";
    cluster.kubectl(&[
        "annotate",
        "pods",
        "-n",
        cluster.name,
        "-l",
        "app=web",
        allowed,
    ]);
    cluster.until("another node took its place", || {
        let claims = names(&cluster.owned("nodeclaims"));
        claims.len() == 1 && claims.is_disjoint(&first) && cluster.running() == 1
    });
    cluster.until("the old node is gone", || cluster.owned("nodes").len() == 1);
    cluster.assert_one_node_a_claim();
    controller.assert_content();
}

#[test]
fn a_sick_node_that_a_reboot_helps_boots_anew_and_stays() {
    let Some(cluster) = Cluster::start("mortise-test-reboot") else {
        return;
    };
    let controller = cluster.controller("one");
    cluster.run(1);
    let claims = names(&cluster.owned("nodeclaims"));
    let node = cluster.owned("nodes").remove(0);
    let name = node["metadata"]["name"].as_str().unwrap();
    let fault = "SimulatedRebootRequired";
    let since = &node["metadata"]["creationTimestamp"];
    cluster.patch_condition(
        name,
        &json!({"type": fault, "status": "True", "reason": "Test", "lastTransitionTime": since}),
    );
    cluster.until("it is to be rebooted", || {
        let claims = cluster.owned("nodeclaims");
        claims.iter().any(|it| is_true(it, "Rebooting"))
    });
    cluster.patch_condition(name, &json!({"type": fault, "$patch": "delete"}));
    cluster.until("it booted anew and takes pods", || {
        let nodes = cluster.owned("nodes");
        let claims = cluster.owned("nodeclaims");
        let boot = |node: &Value| node["status"]["nodeInfo"]["bootID"].clone();
        nodes.len() == 1
            && boot(&nodes[0]) != boot(&node)
            && !claims.iter().any(|it| is_true(it, "Rebooting"))
            && cluster.running() == 1
    });
    assert_eq!(names(&cluster.owned("nodeclaims")), claims);
    cluster.assert_one_node_a_claim();
    controller.assert_content();
}
