//! A controller that has just started acts on nothing before it has seen everything.

use std::time::Duration;

use api_server::{DeleteOptions, Resource};
use serde_json::json;

use crate::world::World;

const LATE: Duration = Duration::from_mins(1);

/// As many pods as fill the first page of a list, on a node that nobody manages.
fn a_page_of_pods(world: &World) {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "other"}});
    world.api.create(&Resource::NODES, "", node).unwrap();
    for number in 0..500 {
        let bound = json!({"spec": {"nodeName": "other"}});
        world.create_pod(&format!("a-{number}"), "1m", &bound);
    }
}

fn hold(world: &World) {
    let held = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "held", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    });
    let budgets = Resource::POD_DISRUPTION_BUDGETS;
    world.api.create(&budgets, "default", held).unwrap();
}

fn let_go(world: &World) {
    let (budgets, now) = (Resource::POD_DISRUPTION_BUDGETS, DeleteOptions::default());
    world.api.delete(&budgets, "default", "held", &now).unwrap();
}

/// A node in the middle of its drain, held by a pod that may not be evicted.
async fn draining() -> World {
    let mut world = World::new();
    world.pass(5).await;
    a_page_of_pods(&world);
    world.create_pod("last", "900m", &json!({}));
    hold(&world);
    world.settle(60).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(10).await;
    assert_eq!(world.cloud.running(), 1);
    world
}

#[tokio::test(start_paused = true)]
async fn a_drain_goes_on_after_a_restart_whatever_is_listed_late() {
    for late in [
        "/api/v1/pods?&limit=500&continue=",
        "/api/v1/nodes?",
        "/nodeclaims?",
    ] {
        let mut world = draining().await;
        world.process.reads_slowly(late, LATE);
        world.restart();
        world.settle(2 * LATE.as_secs()).await;
        assert_eq!(world.cloud.running(), 1, "{late}: its pod is still there");
        let_go(&world);
        let is_over = |world: &World| world.cloud.running() == 0;
        world.until(late, 120, is_over).await;
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_that_are_listed_late_are_waited_for() {
    let mut world = World::new();
    world.delete_node_with_volume().await;
    world.settle(5).await;
    world.process.reads_slowly("/volumeattachments?", LATE);
    world.restart();
    world.settle(2 * LATE.as_secs()).await;
    assert_eq!(world.cloud.running(), 1, "its volume is still attached");
    world.delete(&Resource::VOLUME_ATTACHMENTS, "va");
    world.settle(30).await;
    assert_eq!(world.cloud.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_every_kind_was_listed() {
    let kinds = [
        "/pods?",
        "/nodes?",
        "/nodeclaims?",
        "/nodepools?",
        "/ec2nodeclasses?",
        "/daemonsets?",
        "/namespaces?",
        "/poddisruptionbudgets?",
        "/volumeattachments?",
        "/persistentvolumeclaims?",
        "/persistentvolumes?",
        "/storageclasses?",
        "/csinodes?",
        "/configmaps?",
    ];
    for kind in kinds {
        let mut world = World::new();
        world.pass(5).await;
        world.keep(1, "900m");
        world.settle(60).await;
        // Something is to be done about each kind of object: pods to place, a pool to look at, a claim to end.
        world.keep(2, "7");
        world.change_pool(json!({"spec": {"limits": {"cpu": "1000"}}}));
        let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
        world.process.reads_slowly(kind, LATE);
        world.restart();
        world.delete(&Resource::NODE_CLAIMS, &claim);
        world.process.dies_at(None);
        world.settle(LATE.as_secs() - 2).await;
        assert_eq!(world.process.writes(), 0, "{kind}");
        world.settle(180).await;
        assert_eq!(world.bound_pods(), 2, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_that_the_cluster_does_not_serve_are_not_waited_for() {
    let mut world = World::with_settings(|settings| {
        settings.solving.ignore_dra_requests = false;
        settings.feature_gates.node_overlay = true;
        settings.feature_gates.capacity_buffer = true;
    });
    for path in [
        "volumeattachments",
        "poddisruptionbudgets",
        "csinodes",
        "resource.k8s.io",
        "nodeoverlays",
        "capacitybuffers",
    ] {
        world.process.is_not_served(path);
    }
    world.restart();
    world.keep(1, "900m");
    world.settle(60).await;
    assert_eq!(world.bound_pods(), 1);
}
