//! What users complain about and takes time to show: that it is dealt with, and what `mortise why` answers.

use std::time::Duration;

use api_server::Resource;
use serde_json::json;
use state::ledger::{OutcomeId, Record};

use crate::events::two_nodes;
use crate::world::World;

/// Commands that began for this reason.
fn attempts(world: &World, reason: &str) -> usize {
    let ledger = world.ledger.lock().unwrap();
    let commands = ledger.entries().filter(|it| {
        matches!(&it.record, Record::Command(it)
            if it.outcome == OutcomeId::CommandStarted && it.reason == reason)
    });
    commands.count()
}

#[tokio::test(start_paused = true)]
async fn a_consolidation_without_capacity_is_not_tried_again_and_again() {
    let mut world = World::new();
    let policy = json!({"spec": {"disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "100%"}]}}});
    world.change_pool(policy);
    world.pass(5).await;
    world.keep(2, "3");
    world.settle(90).await;
    assert_eq!(world.cloud.running(), 1, "one large node");
    let node = world.names(&Resource::NODES)[0].clone();
    world
        .cloud
        .with(|it| it.dry.extend(["t.small", "t.medium"].map(str::to_owned)));
    world.keep(1, "3");
    let pod = world.names(&Resource::PODS)[0].clone();
    world.delete_pod(&pod);
    world.settle(15 * 60).await;
    let tries = attempts(&world, "Underutilized");
    assert!(
        (1..=3).contains(&tries),
        "{tries} {}",
        world.why("node", &node)
    );
    world.tells(
        "node",
        &node,
        &["last replacement did not come", "next try"],
    );
    assert!(
        !world.is_tainted(&node, "karpenter.sh/disrupted"),
        "pods may come meanwhile"
    );
    world.cloud.with(|it| it.dry.clear());
    world.settle(25 * 60).await;
    assert!(
        !world.names(&Resource::NODES).contains(&node),
        "the shortage is over"
    );
    assert_eq!(world.cloud.running(), 1);
    assert_eq!(world.bound_pods(), 1);
}

/// Claims that were opened for pods, and not in place of a node.
fn opened(world: &World) -> usize {
    let ledger = world.ledger.lock().unwrap();
    let opened = ledger.entries().map(|it| match &it.record {
        Record::ProvisioningRound(it) => it.claims.len(),
        _ => 0,
    });
    opened.sum()
}

#[tokio::test(start_paused = true)]
async fn what_a_command_failed_to_launch_is_not_launched_for_its_pods_either() {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(2, "3");
    world.settle(90).await;
    assert_eq!((world.cloud.running(), opened(&world)), (1, 1));
    let types = ["t.small", "t.medium", "t.large"].map(str::to_owned);
    world.cloud.with(|it| it.dry.extend(types));
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    world.settle(20 * 60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.tells("node", &node, &["command-failed", "next try"]);
    // After one minute, two, four, eight and ten.
    let tries = attempts(&world, "Drifted");
    assert!((3..=6).contains(&tries), "{tries}");
    assert_eq!(opened(&world), 1, "the pods have run all the time");
    assert_eq!(world.bound_pods(), 2);
    world.cloud.with(|it| it.dry.clear());
    world.settle(11 * 60).await;
    assert!(!world.names(&Resource::NODES).contains(&node));
    assert_eq!((world.cloud.running(), world.bound_pods()), (1, 2));
}

/// A node that is about to be replaced, as its pool has changed.
async fn drifting() -> (World, String) {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(90).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    world.settle(15).await;
    (world, node)
}

#[tokio::test(start_paused = true)]
async fn protection_that_came_late_is_named_as_what_saved_the_node() {
    let (mut world, node) = drifting().await;
    let pod = world.names(&Resource::PODS)[0].clone();
    world.protect(&pod);
    world.settle(200).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let saved = format!("pod default/{pod} is protected by do-not-disrupt now");
    world.tells(
        "node",
        &node,
        &["command-failed", &saved, "carries do-not-disrupt"],
    );
    world.tells(
        "claim",
        &claim,
        &["stopped      has no pod that must stay", &saved],
    );
}

#[tokio::test(start_paused = true)]
async fn protection_counts_although_no_watch_has_told_of_it() {
    for is_of_pod in [true, false] {
        let (mut world, node) = drifting().await;
        let pod = world.names(&Resource::PODS)[0].clone();
        let (path, saved) = if is_of_pod {
            (
                "/pods",
                format!("pod default/{pod} is protected by do-not-disrupt now"),
            )
        } else {
            (
                "/nodes",
                format!("{node} is protected by do-not-disrupt now"),
            )
        };
        world
            .until("a replacement comes", 60, |world| {
                world.names(&Resource::NODES).len() == 2
            })
            .await;
        world.process.watches_lag(path, Duration::from_secs(30));
        if is_of_pod {
            world.protect(&pod);
        } else {
            world.protect_node(&node);
        }
        world.settle(200).await;
        assert!(world.names(&Resource::NODES).contains(&node));
        world.tells("node", &node, &["command-failed", &saved]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_protected_after_others_of_its_command_went_stays_and_says_why() {
    let together = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "2m", "budgets": [{"nodes": "100%"}]});
    let mut world = two_nodes(together).await;
    let nodes = world.names(&Resource::NODES);
    for (pod, node) in ["c", "d"].iter().zip(&nodes) {
        world.create_pod(pod, "900m", &json!({"spec": {"nodeName": node}}));
        let running = json!({"status": {"phase": "Running"}});
        world
            .api
            .patch_merge_status(&Resource::PODS, "default", pod, running)
            .unwrap();
    }
    for pod in ["a", "b"] {
        world.delete_pod(pod);
    }
    world
        .until("one node comes for both", 300, |world| {
            world.cloud.running() == 3
        })
        .await;
    let claim = world.list(&Resource::NODES)[0]["metadata"]["ownerReferences"][0].clone();
    world.delete(&Resource::NODE_CLAIMS, claim["name"].as_str().unwrap());
    world.protect("d");
    world.settle(120).await;
    let left = world.names(&Resource::NODES);
    assert!(!left.contains(&nodes[0]) && left.contains(&nodes[1]));
    assert!(!world.is_tainted(&nodes[1], "karpenter.sh/disrupted"));
    let saved = "pod default/d is protected by do-not-disrupt now";
    world.tells("node", &nodes[1], &["command-failed", saved]);
}
