//! Pods that a ReplicaSet is about to create are bought for with those that are there.

use std::time::Duration;

use api_server::Resource;
use serde_json::{Value, json};

use crate::world::World;

/// Two of its pods fill a node of eight CPUs.
const CPU: &str = "3";
const REPLICAS: usize = 4;

/// A world with a ReplicaSet that has its first pod.
async fn with(plans_coming_pods: bool) -> (World, Value) {
    let (world, owner) = with_no_pods(plans_coming_pods).await;
    world.create_pod("web-0", CPU, &owner);
    (world, owner)
}

/// A world with a ReplicaSet that has none of its pods.
async fn with_no_pods(plans_coming_pods: bool) -> (World, Value) {
    let world = World::with_settings(|it| it.plan_coming_pods = plans_coming_pods);
    world.pass(5).await;
    let container = json!({"name": "c", "image": "x", "resources": {"requests": {"cpu": CPU}}});
    let labels = json!({"app": "web"});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"},
        "spec": {
            "replicas": REPLICAS, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    let set = world
        .api
        .create(&Resource::REPLICA_SETS, "default", set)
        .unwrap();
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": set["metadata"]["uid"], "controller": true,
    }]}});
    (world, owner)
}

fn claims(world: &World) -> usize {
    world.list(&Resource::NODE_CLAIMS).len()
}

/// Nodes that take pods.
fn open(world: &World) -> usize {
    let nodes = world.list(&Resource::NODES);
    let is_open = |node: &Value| !node["spec"]["taints"].to_string().contains("unregistered");
    nodes.iter().filter(|node| is_open(node)).count()
}

#[tokio::test(start_paused = true)]
async fn a_node_is_bought_for_the_pods_to_come_too_and_none_for_them_alone() {
    for (is_on, expected) in [(true, "6"), (false, "3")] {
        let (world, _) = with(is_on).await;
        world
            .until("a node is bought", 20, |world| claims(world) > 0)
            .await;
        world.pass(5).await;
        let claims = world.list(&Resource::NODE_CLAIMS);
        assert_eq!(claims.len(), 1, "{is_on}");
        let cpu = &claims[0]["spec"]["resources"]["requests"]["cpu"];
        assert_eq!(cpu, expected, "{is_on}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_that_were_to_be_expected_do_not_hold_up_the_launch() {
    // Of a set that was asked for long ago pods come in the place of others.
    for (seconds_ago, expected) in [(0, 1), (301, 0)] {
        let (world, owner) = with_no_pods(true).await;
        tokio::time::sleep(Duration::from_secs(seconds_ago)).await;
        // Because of it no node is full, and so bought before the batch is complete.
        world.create_pod("tiny", "100m", &json!({}));
        for number in 0..3 {
            world.create_pod(&format!("web-{number}"), CPU, &owner);
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
        assert_eq!(claims(&world), expected, "asked for {seconds_ago} s ago");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_opens_when_the_pods_planned_for_it_are_there() {
    let (world, owner) = with(true).await;
    // As long as pods come, if only of others, the set may still be waiting for its turn.
    let others = json!({
        "metadata": {"ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "other", "uid": "other", "controller": true,
        }]},
        "spec": {"nodeName": "elsewhere"},
    });
    let mut elsewhere = 0;
    while world.list(&Resource::NODES).is_empty() {
        assert!(elsewhere < 20, "no node came");
        world.create_pod(&format!("other-{elsewhere}"), CPU, &others);
        elsewhere += 1;
        world.pass(5).await;
    }
    assert_eq!(open(&world), 0);
    world.create_pod("web-1", CPU, &owner);
    let is_open = |world: &World| open(world) == 1;
    world.until("the node is open", 3, is_open).await;
    for number in 2..REPLICAS {
        world.create_pod(&format!("web-{number}"), CPU, &owner);
    }
    // Those elsewhere are collected, as their node is not there.
    let all_bound = |world: &World| {
        let pods = world.list(&Resource::PODS);
        let is_bound_web = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("web-") && pod["spec"]["nodeName"].is_string()
        };
        pods.iter().filter(|pod| is_bound_web(pod)).count() == REPLICAS
    };
    world.until("pods are bound", 90, all_bound).await;
    assert_eq!(claims(&world), 2);
    assert_eq!(world.metrics.pods_off_plan.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_come_hold_nobody_up_for_long() {
    let (world, _) = with(true).await;
    let has_node = |world: &World| world.list(&Resource::NODES).len() == 1;
    world.until("the node is there", 60, has_node).await;
    let is_bound = |world: &World| world.bound_pods() == 1;
    world.until("the pod is bound", 20, is_bound).await;
}
