//! Pods are told to the scheduler with the node that is planned for them, just before it opens.

use std::sync::Arc;

use api_server::Resource;
use controllers::NominatePlannedPods;
use serde_json::{Value, json};

use crate::world::World;

/// Two of each kind, so that each node of eight CPUs holds one of both.
const MIXED: [(&str, &str); 4] = [
    ("large-1", "6500m"),
    ("large-2", "6500m"),
    ("small-1", "900m"),
    ("small-2", "900m"),
];

async fn with(pods: &[(&str, &str)], settings: bool) -> World {
    let world = World::with_settings(|it| {
        it.nominate_planned_pods = if settings {
            NominatePlannedPods::On
        } else {
            NominatePlannedPods::Off
        };
    });
    world.pass(5).await;
    create(&world, pods);
    world
}

fn create(world: &World, pods: &[(&str, &str)]) {
    for (name, cpu) in pods {
        world.create_pod(name, cpu, &json!({}));
    }
}

async fn bound(world: &World, pods: usize) {
    let is_bound = |world: &World| world.bound_pods() == pods;
    world.until("pods are bound", 120, is_bound).await;
}

fn places(world: &World) -> Vec<(Value, Value)> {
    let pods = world.list(&Resource::PODS).into_iter();
    let place = |pod: &Value| {
        let node = pod["spec"]["nodeName"].clone();
        (node, pod["status"]["nominatedNodeName"].clone())
    };
    pods.map(|pod| place(&pod)).collect()
}

fn writes(world: &World, pods: &[(&str, &str)]) -> usize {
    let path = |name| format!("/api/v1/namespaces/default/pods/{name}/status");
    let counts = pods
        .iter()
        .map(|(name, _)| world.process.written(&path(name)));
    counts.sum()
}

#[tokio::test(start_paused = true)]
async fn pods_are_nominated_to_the_node_planned_for_them() {
    let world = with(&MIXED, true).await;
    bound(&world, MIXED.len()).await;
    for (node, nominated) in places(&world) {
        assert_eq!(node, nominated);
    }
    assert_eq!(world.metrics.pods_nominated.get(), 4);
    assert_eq!(world.metrics.pods_off_plan.get(), 0);
    let pods = world.list(&Resource::PODS);
    let managers = pods[0]["metadata"]["managedFields"].to_string();
    assert!(managers.contains("mortise-plan"), "{managers}");
}

#[tokio::test(start_paused = true)]
async fn what_may_go_anywhere_or_is_not_to_be_told_is_not_told() {
    let alike = [("a", "3"), ("b", "3"), ("c", "3"), ("d", "3")];
    for (pods, is_on) in [(&alike, true), (&MIXED, false)] {
        let world = with(pods, is_on).await;
        bound(&world, pods.len()).await;
        assert_eq!(writes(&world, pods), 0, "{pods:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_not_nominate_asks_no_more_and_pods_run_all_the_same() {
    let world = with(&MIXED, true).await;
    for (name, _) in MIXED {
        world.process.may_not_write(&format!("/pods/{name}/status"));
    }
    bound(&world, MIXED.len()).await;
    let first = writes(&world, &MIXED);
    assert!((1..=4).contains(&first), "{first}");
    let later = [("large-3", "6500m"), ("small-3", "900m")];
    create(&world, &later);
    bound(&world, MIXED.len() + later.len()).await;
    assert_eq!(writes(&world, &later), 0);
}

#[tokio::test(start_paused = true)]
async fn a_nomination_of_the_scheduler_is_left_alone() {
    let world = with(&[], true).await;
    create(&world, &MIXED);
    let status = json!({"status": {"nominatedNodeName": "elsewhere"}});
    let (pods, pod) = (Resource::PODS, "small-1");
    world
        .api
        .patch_merge_status(&pods, "default", pod, status)
        .unwrap();
    world.pass(60).await;
    assert_eq!(writes(&world, &[("small-1", "")]), 0);
    let pod = world.api.get(&pods, "default", pod).unwrap();
    assert_eq!(pod["status"]["nominatedNodeName"], "elsewhere");
}

#[tokio::test(start_paused = true)]
async fn pods_are_told_of_a_node_once_it_is_ready_and_before_it_opens() {
    let world = with(&MIXED, true).await;
    let nodes = || world.list(&Resource::NODES);
    for _ in 0..60 {
        world.pass(1).await;
        let told = world.metrics.pods_nominated.get();
        let is_ready = |node: &Arc<Value>| node["status"]["conditions"][0]["status"] == "True";
        assert!(
            told == 0 || nodes().iter().any(is_ready),
            "told of what is not ready"
        );
        let is_open =
            |node: &Arc<Value>| node["spec"]["taints"].as_array().is_none_or(Vec::is_empty);
        assert!(
            told > 0 || !nodes().iter().any(is_open),
            "open before its pods are told"
        );
    }
    assert_eq!(world.bound_pods(), MIXED.len());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_the_scheduler_forgot_is_told_again_once_its_node_is_open() {
    let pods = [
        ("large", "6500m"),
        ("overlooked-1", "900m"),
        ("overlooked-2", "200m"),
    ];
    let world = with(&pods, true).await;
    bound(&world, 1).await;
    let kind = Resource::PODS;
    let nominated = || {
        let pod = world.api.get(&kind, "default", "overlooked-1").unwrap();
        pod["status"]["nominatedNodeName"].clone()
    };
    let place = nominated();
    assert!(place.is_string());
    let forgotten = json!({"status": {"nominatedNodeName": null}});
    world
        .api
        .patch_merge_status(&kind, "default", "overlooked-1", forgotten)
        .unwrap();
    assert!(nominated().is_null());
    world.pass(5).await;
    assert_eq!(nominated(), place);
}
