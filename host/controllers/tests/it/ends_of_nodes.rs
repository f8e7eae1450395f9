//! Nodes, claims and pools that somebody deletes, and instances that are gone before their nodes.

use std::time::Duration;

use api_server::Resource;
use serde_json::json;

use crate::world::World;

/// As with credentials of another account, or in another region.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_ready_stays_where_the_cloud_cannot_tell_that_its_instance_is_gone() {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(90).await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    let node = world.names(&Resource::NODES)[0].clone();
    world.cloud.with(|it| it.looks_elsewhere = true);
    world.be_sick(&node, "Ready", "Unknown");
    world.settle(400).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), claims);
    world.cloud.with(|it| {
        it.looks_elsewhere = false;
        it.instances.clear();
    });
    world.be_sick(&node, "Ready", "Unknown");
    world.settle(400).await;
    assert_ne!(world.names(&Resource::NODE_CLAIMS), claims);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_instance_is_gone_goes_at_once() {
    let mut world = World::with_pods(1, "900m").await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.cloud.with(|state| state.instances.clear());
    world.be_sick(&node, "Ready", "False");
    world.delete(&Resource::NODES, &node);
    world.settle(5).await;
    assert!(!world.names(&Resource::NODES).contains(&node));
    world.settle(180).await;
    assert_eq!(world.bound_pods(), 1);
    assert_eq!(world.cloud.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_claim_of_a_deleted_node_is_deleted_at_a_calm_pace_while_its_watch_tells_late() {
    let mut world = World::with_pods(1, "900m").await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.process.writes_take(Duration::from_millis(20));
    world
        .process
        .watches_lag("/nodeclaims", Duration::from_secs(10));
    let before = world.process.writes();
    world.delete(&Resource::NODES, &node);
    world.settle(8).await;
    let calls = world.process.calls().split_off(before);
    let deletions = calls
        .iter()
        .filter(|it| it.starts_with("DELETE ") && it.contains("/nodeclaims/"));
    let times = deletions.count();
    assert!((1..=9).contains(&times), "{times}");
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_deleted_takes_its_nodes_with_it() {
    let mut world = World::with_pods(1, "900m").await;
    world.keep(0, "");
    world.delete(&Resource::NODE_POOLS, "default");
    world.settle(180).await;
    assert!(world.names(&Resource::NODE_CLAIMS).is_empty());
    assert!(world.names(&Resource::NODES).is_empty());
    assert_eq!(world.cloud.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_deleted_in_the_middle_of_a_command_ends_it_cleanly() {
    let mut world = World::with_pods(1, "900m").await;
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    world.settle(15).await;
    world.keep(0, "");
    world.delete(&Resource::NODE_POOLS, "default");
    world.settle(300).await;
    assert!(world.names(&Resource::NODE_CLAIMS).is_empty());
    assert_eq!(world.cloud.running(), 0);
    assert!(world.controllers.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_somebody_deletes_ends_the_command_and_the_node_stays() {
    let mut world = World::with_pods(1, "900m").await;
    let old = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let node = world.names(&Resource::NODES)[0].clone();
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    world.settle(14).await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    let new = claims.iter().find(|it| **it != old).unwrap().clone();
    // Drift goes on with another one only when the budget is open.
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    world.delete(&Resource::NODE_CLAIMS, &new);
    world.settle(120).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), [old]);
    assert!(!world.is_tainted(&node, "karpenter.sh/disrupted"));
    assert_eq!(world.bound_pods(), 1);
    assert_eq!(world.cloud.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_comes_and_goes_within_a_second_leaves_nothing() {
    let mut world = World::new();
    world.pass(5).await;
    for round in 0..5 {
        world.create_pod(&format!("p{round}"), "900m", &json!({}));
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            if let Some(claim) = world.names(&Resource::NODE_CLAIMS).first() {
                world.delete(&Resource::NODE_CLAIMS, claim);
                break;
            }
        }
        world.delete_pod(&format!("p{round}"));
        world.settle(20).await;
    }
    world.settle(180).await;
    assert!(world.names(&Resource::NODE_CLAIMS).is_empty());
    assert_eq!(world.cloud.running(), 0);
}
