//! NodePools' limits and disruption budgets, as controllers that keep running keep to them.

use api_server::Resource;
use serde_json::json;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn limits_hold_for_pods_that_keep_coming() {
    let mut world = World::new();
    world.change_pool(json!({"spec": {"limits": {"cpu": "16"}}}));
    world.pass(5).await;
    world.keep(5, "7");
    world.settle(180).await;
    assert_eq!(world.cloud.running(), 2);
    assert_eq!(world.bound_pods(), 2);
    assert!(world.times_recorded("pool-limit-reached") > 0);
    world.change_pool(json!({"spec": {"limits": {"cpu": "24"}}}));
    world.settle(120).await;
    assert_eq!(world.cloud.running(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_cannot_be_understood_closes_the_pool() {
    let mut world = World::with_pods(1, "900m").await;
    let broken = json!([{"nodes": "100%", "schedule": "61 * * * *", "duration": "1h"}]);
    world.change_pool(json!({"spec": {"disruption": {"budgets": broken}}}));
    world.keep(0, "");
    for pod in world.names(&Resource::PODS) {
        world.delete_pod(&pod);
    }
    world.settle(180).await;
    assert_eq!(world.cloud.running(), 1, "nobody knows what was meant");
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    world.settle(120).await;
    assert_eq!(world.cloud.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_window_of_a_whole_day_that_opens_daily_is_never_over() {
    let mut world = World::with_pods(1, "900m").await;
    let closed = json!([{"nodes": "0", "schedule": "@daily", "duration": "24h"}]);
    world.change_pool(json!({"spec": {"disruption": {"budgets": closed}}}));
    world.keep(0, "");
    for pod in world.names(&Resource::PODS) {
        world.delete_pod(&pod);
    }
    world.settle(600).await;
    assert_eq!(
        world.cloud.running(),
        1,
        "a window of a whole day is never over"
    );
}
