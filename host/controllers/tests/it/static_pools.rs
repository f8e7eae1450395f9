//! NodePools that keep replicas.

use std::time::Duration;

use api_server::Resource;
use serde_json::json;

use crate::world::World;

async fn with_replicas(replicas: u32, limit: Option<u32>) -> World {
    let mut world = World::with_settings(|settings| settings.feature_gates.static_capacity = true);
    let mut spec = json!({"replicas": replicas});
    if let Some(limit) = limit {
        spec["limits"] = json!({"nodes": limit.to_string()});
    }
    world.delete(&Resource::NODE_POOLS, "default");
    world.pass(2).await;
    let mut pool = crate::world::node_pool(&json!({"spec": spec}));
    pool["spec"]["disruption"] = json!({"budgets": [{"nodes": "100%"}]});
    world.api.create(&Resource::NODE_POOLS, "", pool).unwrap();
    world.settle(60).await;
    world
}

fn ready(world: &World) -> usize {
    let claims = world.names(&Resource::NODE_CLAIMS);
    let is_ready = |name: &&String| {
        world
            .condition(&Resource::NODE_CLAIMS, name, "Initialized")
            .as_deref()
            == Some("True")
    };
    claims.iter().filter(is_ready).count()
}

#[tokio::test(start_paused = true)]
async fn a_static_pool_has_its_nodes_without_any_pod_and_keeps_them() {
    let mut world = with_replicas(3, None).await;
    assert_eq!(ready(&world), 3);
    let claims = world.names(&Resource::NODE_CLAIMS);
    world.settle(300).await;
    assert_eq!(
        world.names(&Resource::NODE_CLAIMS),
        claims,
        "empty nodes stay"
    );
    assert_eq!(world.cloud.with(|it| it.launches), 3);
    world.settle(10).await;
    let pool = world.api.get(&Resource::NODE_POOLS, "", "default").unwrap();
    assert_eq!(pool["status"]["nodes"], 3);
}

#[tokio::test(start_paused = true)]
async fn replicas_go_up_and_down_and_used_nodes_go_last() {
    let mut world = with_replicas(2, None).await;
    world.create_pod("a", "900m", &json!({}));
    world.settle(10).await;
    let used = world.list(&Resource::PODS)[0]["spec"]["nodeName"].clone();
    world.change_pool(json!({"spec": {"replicas": 4}}));
    world.settle(60).await;
    assert_eq!(ready(&world), 4);
    world.change_pool(json!({"spec": {"replicas": 1}}));
    world.settle(60).await;
    assert_eq!(world.names(&Resource::NODES), [used.as_str().unwrap()]);
    assert_eq!(world.cloud.running(), 1);
    world.change_pool(json!({"spec": {"replicas": 0}}));
    world.settle(60).await;
    assert_eq!(world.cloud.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_deleted_is_made_up_for() {
    let mut world = with_replicas(2, None).await;
    let gone = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &gone);
    world.settle(90).await;
    assert_eq!(ready(&world), 2);
    assert!(!world.names(&Resource::NODE_CLAIMS).contains(&gone));
    assert_eq!(world.cloud.running(), 2);
}

#[tokio::test(start_paused = true)]
async fn there_are_never_more_nodes_than_the_limit() {
    let mut world = with_replicas(4, Some(2)).await;
    assert_eq!(ready(&world), 2);
    let gone = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &gone);
    for _ in 0..120 {
        world.settle(1).await;
        assert!(world.names(&Resource::NODE_CLAIMS).len() <= 2);
    }
    assert_eq!(ready(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn drift_exchanges_the_nodes_without_one_too_many_being_taken_away() {
    let mut world = with_replicas(2, None).await;
    let old = world.names(&Resource::NODE_CLAIMS);
    world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
    let mut fewest = usize::MAX;
    for _ in 0..240 {
        world.settle(1).await;
        fewest = fewest.min(ready(&world));
    }
    let new = world.names(&Resource::NODE_CLAIMS);
    assert!(old.iter().all(|it| !new.contains(it)), "{old:?} {new:?}");
    assert_eq!(ready(&world), 2);
    assert!(fewest >= 2, "replacements come first: {fewest}");
    assert_eq!(world.cloud.with(|it| it.launches), 4);
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_drift_waits_or_lets_the_node_go_first() {
    for goes_first in [false, true] {
        let mut world = World::with_settings(|settings| {
            settings.feature_gates.static_capacity = true;
            settings.feature_gates.terminate_first_drift = goes_first;
        });
        world.change_pool(json!({"spec": {"limits": {"nodes": "1"}}}));
        world.delete(&Resource::NODE_POOLS, "default");
        world.pass(2).await;
        let pool =
            crate::world::node_pool(&json!({"spec": {"replicas": 1, "limits": {"nodes": "1"}}}));
        world.api.create(&Resource::NODE_POOLS, "", pool).unwrap();
        world.settle(60).await;
        let old = world.names(&Resource::NODE_CLAIMS);
        world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
        world.settle(180).await;
        assert_eq!(world.names(&Resource::NODE_CLAIMS) == old, !goes_first);
        assert_eq!(ready(&world), 1);
        let limit = "The NodePool keeps replicas and is at its limit of nodes, so no replacement can \
                     come first: nodepool \"default\" is at its limit of nodes";
        for kind in ["Node", "NodeClaim"] {
            let told = world.event_messages(kind, "DisruptionBlocked");
            assert_eq!(
                told.contains(&limit.to_owned()),
                !goes_first,
                "{kind} {told:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_scaling_makes_no_node_too_many() {
    for seconds in [1, 2, 3, 5, 8, 20] {
        let mut world = with_replicas(1, None).await;
        world.change_pool(json!({"spec": {"replicas": 4}}));
        world.pass(seconds).await;
        world.restart();
        world.settle(120).await;
        assert_eq!(ready(&world), 4, "{seconds}");
        assert_eq!(world.cloud.with(|it| it.launches), 4, "{seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_replicas_are_left_alone() {
    let mut world = World::new();
    world.delete(&Resource::NODE_POOLS, "default");
    world.pass(2).await;
    let pool = crate::world::node_pool(&json!({"spec": {"replicas": 2}}));
    world.api.create(&Resource::NODE_POOLS, "", pool).unwrap();
    world.settle(60).await;
    assert_eq!(world.cloud.with(|it| it.launches), 0);
}

#[tokio::test(start_paused = true)]
async fn of_many_claims_none_is_launched_twice_when_the_watch_tells_late() {
    let mut world = with_replicas(1, None).await;
    let late = Duration::from_secs(5);
    world.process.watches_lag("/nodeclaims", late);
    world.process.writes_take(Duration::from_millis(50));
    world.change_pool(json!({"spec": {"replicas": 280}}));
    world.settle(90).await;
    assert_eq!(ready(&world), 280);
    let asked = world.cloud.with(|it| it.asked.clone());
    let again = asked.values().filter(|times| **times > 1).count();
    assert_eq!((asked.len(), again), (280, 0));
}
