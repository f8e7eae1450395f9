//! What a NodePool says of how its latest nodes registered, and when that starts anew.

use api_server::Resource;
use serde_json::json;

use crate::world::{World, node_pool};

/// How the pool's latest registrations went, as its condition tells.
fn health(world: &World) -> Option<String> {
    world.condition(&Resource::NODE_POOLS, "default", "NodeRegistrationHealthy")
}

#[tokio::test(start_paused = true)]
async fn two_failed_registrations_are_said_of_the_pool_until_one_succeeds_or_it_changes() {
    let mut world = World::new();
    *world.boots.lock().unwrap() = false;
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(16 * 60).await;
    assert_ne!(health(&world).as_deref(), Some("False"), "one is bad luck");
    world.settle(16 * 60).await;
    assert_eq!(health(&world).as_deref(), Some("False"));
    let ready = world.condition(&Resource::NODE_POOLS, "default", "Ready");
    assert_eq!(ready.as_deref(), Some("True"), "for information only");
    world.change_pool(json!({"spec": {"weight": 7}}));
    world.settle(30).await;
    assert_eq!(
        health(&world).as_deref(),
        Some("Unknown"),
        "of another version of the pool"
    );
    *world.boots.lock().unwrap() = true;
    world.settle(20 * 60).await;
    assert_eq!(health(&world).as_deref(), Some("True"));
}

#[tokio::test(start_paused = true)]
async fn a_condition_whose_writes_meet_conflicts_is_written_all_the_same() {
    let mut world = World::new();
    let pool = "/apis/karpenter.sh/v1/nodepools/default";
    let healthy = r#""status":"True","type":"NodeRegistrationHealthy""#;
    world.process.conflicts(pool, healthy, 2);
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(90).await;
    assert_eq!(world.process.conflicts_left(), 0);
    assert_eq!(health(&world).as_deref(), Some("True"));
}

#[tokio::test(start_paused = true)]
async fn failures_before_an_edit_or_of_an_earlier_pool_do_not_count() {
    let mut world = World::new();
    *world.boots.lock().unwrap() = false;
    world.settle(5).await;
    assert_eq!(health(&world).as_deref(), Some("Unknown"), "of a new pool");
    world.keep(1, "900m");
    // A failure each, before and after the edit.
    world.settle(16 * 60).await;
    world.change_pool(json!({"spec": {"weight": 7}}));
    world.settle(16 * 60).await;
    assert_eq!(health(&world).as_deref(), Some("Unknown"));
    world.delete(&Resource::NODE_POOLS, "default");
    world.settle(60).await;
    let pools = Resource::NODE_POOLS;
    world.api.create(&pools, "", node_pool(&json!({}))).unwrap();
    world.settle(16 * 60).await;
    assert_eq!(health(&world).as_deref(), Some("Unknown"));
    world.settle(16 * 60).await;
    assert_eq!(health(&world).as_deref(), Some("False"));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_registrations_outlives_a_restart() {
    let mut world = World::new();
    *world.boots.lock().unwrap() = false;
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(33 * 60).await;
    assert_eq!(health(&world).as_deref(), Some("False"));
    world.restart();
    *world.boots.lock().unwrap() = true;
    world.settle(17 * 60).await;
    assert_eq!(world.bound_pods(), 1);
    assert_eq!(
        health(&world).as_deref(),
        Some("False"),
        "one success after two failures is not enough"
    );
}
