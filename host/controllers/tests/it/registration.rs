//! Nodes and claims that find each other, and what is written on them when they do.

use std::time::Duration;

use api_server::{NamespacedName, ObjectPart, Resource};
use apis::ProviderId;
use serde_json::{Value, json};

use crate::cloud::State;
use crate::world::World;

const CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";

/// A world where an instance runs that has not joined; its provider id.
async fn with_an_instance() -> (World, ProviderId) {
    let mut world = World::new();
    *world.boots.lock().unwrap() = false;
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(10).await;
    let instance = |state: &mut State| state.instances.keys().next().cloned();
    let id = world.cloud.with(instance).unwrap();
    (world, id)
}

fn join(world: &World, name: &str, provider_id: &ProviderId, taints: &Value) {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"providerID": provider_id.as_str(), "taints": taints},
    });
    world.api.create(&Resource::NODES, "", node).unwrap();
}

fn unregistered() -> Value {
    json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}])
}

fn registered(world: &World) -> (Option<String>, Option<String>) {
    let claims = Resource::NODE_CLAIMS;
    let claim = world.names(&claims)[0].clone();
    (
        world.condition(&claims, &claim, "Registered"),
        world.reason(&claims, &claim, "Registered"),
    )
}

#[tokio::test(start_paused = true)]
async fn claims_and_nodes_of_older_releases_get_the_label_of_their_class() {
    let mut world = World::with_pods(1, "900m").await;
    for kind in [Resource::NODE_CLAIMS, Resource::NODES] {
        let name = world.names(&kind)[0].clone();
        let key = NamespacedName::new("", name.as_str());
        world
            .api
            .modify(&kind, &key, |object| {
                let labels = object["metadata"]["labels"].as_object_mut().unwrap();
                assert_eq!(labels.remove(CLASS), Some(json!("default")));
            })
            .unwrap();
        world.settle(5).await;
        let object = world.api.get(&kind, "", &name).unwrap();
        assert_eq!(object["metadata"]["labels"][CLASS], "default", "{object}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_nodes_of_one_instance_do_not_register() {
    let (mut world, id) = with_an_instance().await;
    join(&world, "one", &id, &unregistered());
    join(&world, "two", &id, &unregistered());
    world.settle(30).await;
    let (status, reason) = registered(&world);
    assert_eq!(status.as_deref(), Some("False"));
    assert_eq!(reason.as_deref(), Some("MultipleNodesFound"));
    world.delete(&Resource::NODES, "two");
    world.settle(30).await;
    assert_eq!(registered(&world).0.as_deref(), Some("True"));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_unregistered_taint_registers_and_people_hear_of_it() {
    for (taints, is_told) in [(json!([]), true), (unregistered(), false)] {
        let (mut world, id) = with_an_instance().await;
        join(&world, "one", &id, &taints);
        world.settle(30).await;
        assert_eq!(registered(&world).0.as_deref(), Some("True"));
        let events = world.event_reasons("NodeClaim");
        let told = events.contains(&"UnregisteredTaintMissing".to_owned());
        assert_eq!(told, is_told, "{taints}: {events:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_of_pod_events_is_noted_once_in_ten_seconds() {
    let mut world = World::with_pods(1, "900m").await;
    let noted = |world: &World| {
        let claim = world.list(&Resource::NODE_CLAIMS)[0].clone();
        claim["status"]["lastPodEventTime"].clone()
    };
    let mut seen = vec![noted(&world)];
    world.settle(15).await;
    // Every other second a pod ends.
    for number in 0..4 {
        let name = format!("p-{number}");
        let node = world.names(&Resource::NODES)[0].clone();
        world.create_pod(&name, "1m", &json!({"spec": {"nodeName": node}}));
        world.settle(2).await;
        let key = NamespacedName::new("default", name.as_str());
        world
            .api
            .modify_part(&Resource::PODS, &key, ObjectPart::Status, |pod| {
                pod["status"]["phase"] = json!("Succeeded");
            })
            .unwrap();
        seen.push(noted(&world));
    }
    seen.dedup();
    assert_eq!(seen.len(), 2, "{seen:?}");
    world.settle(15).await;
    world.delete_pod("p-0");
    world.create_pod("late", "1m", &json!({}));
    world.settle(5).await;
    seen.push(noted(&world));
    seen.dedup();
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn of_many_nodes_that_register_at_once_one_tells_the_pools_health() {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(40, "7");
    world.process.writes_take(Duration::from_millis(500));
    world.settle(60).await;
    assert_eq!(world.names(&Resource::NODES).len(), 40);
    let told = world.condition(&Resource::NODE_POOLS, "default", "NodeRegistrationHealthy");
    assert_eq!(told.as_deref(), Some("True"));
    let path = "/apis/karpenter.sh/v1/nodepools/default/status";
    let written = world.process.written(path);
    assert!(written < 20, "{written}");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_told_of_though_its_pools_health_cannot_be_written() {
    let mut world = World::new();
    world.pass(5).await;
    world.process.writes_fail("/nodepools/default/status");
    world.keep(1, "900m");
    world.settle(90).await;
    assert_eq!(world.bound_pods(), 1);
    for outcome in ["claim-registered", "claim-initialized"] {
        assert_eq!(world.times_recorded(outcome), 1, "{outcome}");
    }
    let feed = world.controllers.feed().since(0);
    let told = feed.iter().filter(|it| it.text.contains(" is ready ("));
    assert_eq!(told.count(), 1);
    let healthy = |world: &World| {
        world.condition(&Resource::NODE_POOLS, "default", "NodeRegistrationHealthy")
    };
    assert_ne!(
        healthy(&world).as_deref(),
        Some("True"),
        "it was not written"
    );
    world.process.writes_succeed();
    world.keep(2, "1500m");
    world.settle(90).await;
    assert_eq!(healthy(&world).as_deref(), Some("True"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_registers_tells_its_memory_and_again_when_another_process_begins() {
    let mut world = World::with_pods(1, "900m").await;
    let learned = |world: &World| world.cloud.with(|state| state.learned.clone());
    let claim = &world.list(&Resource::NODE_CLAIMS)[0];
    let kind = claim["metadata"]["labels"]["node.kubernetes.io/instance-type"].as_str();
    let node = &world.list(&Resource::NODES)[0];
    let memory = node["status"]["capacity"]["memory"].as_str().unwrap();
    let bytes = apis::quantity::parse_millis(memory).unwrap() / 1000;
    let told = format!("{} image-1 {bytes}", kind.unwrap());
    assert_eq!(learned(&world), [(told.clone(), 1)].into());
    world.restart();
    world.settle(30).await;
    assert_eq!(learned(&world), [(told, 2)].into());
}

fn modify(world: &World, resource: &Resource, name: &str, change: impl FnMut(&mut Value)) {
    let key = NamespacedName::new("", name);
    world.api.modify(resource, &key, change).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_startup_taint_that_stays_keeps_the_node_from_being_touched() {
    let mut world = World::new();
    let taints = json!([{"key": "example.com/init", "effect": "NoSchedule"}]);
    world.change_pool(json!({"spec": {"template": {"spec": {"startupTaints": taints}}}}));
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.settle(120).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let reason = world.reason(&Resource::NODE_CLAIMS, &claim, "Initialized");
    assert_eq!(reason.as_deref(), Some("StartupTaintsExist"));
    world.settle(180).await;
    assert_eq!(
        world.cloud.with(|it| it.launches),
        1,
        "the pod waits for this one"
    );
    let node = world.names(&Resource::NODES)[0].clone();
    modify(&world, &Resource::NODES, &node, |node| {
        node["spec"]["taints"] = json!([]);
    });
    world.settle(30).await;
    let initialized = world.condition(&Resource::NODE_CLAIMS, &claim, "Initialized");
    assert_eq!(initialized.as_deref(), Some("True"));
    assert_eq!(world.bound_pods(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_much_smaller_than_it_was_sold_as_is_noted() {
    let mut world = World::with_pods(1, "900m").await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let node = world.names(&Resource::NODES)[0].clone();
    let key = NamespacedName::new("", node.as_str());
    world
        .api
        .modify_part(&Resource::NODES, &key, ObjectPart::Status, |node| {
            node["status"]["capacity"]["cpu"] = json!("1");
        })
        .unwrap();
    world.settle(11 * 60).await;
    let found = world.condition(&Resource::NODE_CLAIMS, &claim, "ConsistentStateFound");
    assert_eq!(found.as_deref(), Some("False"));
    assert!(
        world
            .event_reasons("NodeClaim")
            .contains(&"FailedConsistencyCheck".to_owned())
    );
}
