//! Pods come and go.

use std::time::Duration;

use serde_json::json;

use crate::rig::{Cluster, is_true, names};

#[test]
fn pods_run_where_they_were_planned_and_nothing_is_left_of_their_nodes() {
    let Some(cluster) = Cluster::start("mortise-test-life") else {
        return;
    };
    let controller = cluster.controller("one");
    cluster.run(60);
    let claims = names(&cluster.owned("nodeclaims"));
    cluster.stays(
        "the first plan is the last",
        Duration::from_secs(15),
        || names(&cluster.owned("nodeclaims")) == claims,
    );
    cluster.assert_one_node_a_claim();

    cluster.kubectl(&["delete", "deployment", "web", "-n", cluster.name]);
    cluster.until("the claims and the nodes are gone", || {
        cluster.owned("nodeclaims").is_empty() && cluster.owned("nodes").is_empty()
    });
    controller.assert_content();
}

#[test]
fn a_claim_of_nobody_gets_a_node_and_takes_it_along() {
    let Some(cluster) = Cluster::start("mortise-test-claim") else {
        return;
    };
    let controller = cluster.controller("one");
    // The class is not ready yet when the claim comes.
    cluster.apply(&json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": cluster.name, "labels": {"karpenter.sh/nodepool": cluster.name}},
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": cluster.name},
            "requirements": [{"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c"]}],
        },
    }));
    cluster.until("its node is initialized", || {
        let claims = cluster.owned("nodeclaims");
        claims.len() == 1 && is_true(&claims[0], "Initialized")
    });
    cluster.assert_one_node_a_claim();
    cluster.kubectl(&["delete", "nodeclaim", cluster.name, "--timeout=60s"]);
    assert!(cluster.owned("nodes").is_empty());
    controller.assert_content();
}
