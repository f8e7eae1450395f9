//! Beside another provider's pools, claims and nodes: not one write on them.

use std::collections::BTreeMap;

use api_server::{DeleteOptions, Resource};
use serde_json::{Value, json};

use crate::world::{World, merge, node_pool};

const FOREIGN: &str = "foreign";

fn class() -> Value {
    // Of the same name as ours.
    json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"})
}

fn claim(name: &str, extra: &Value) -> Value {
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": FOREIGN}},
        "spec": {"requirements": [], "nodeClassRef": class(), "expireAfter": "1m"},
    });
    merge(&mut claim, extra);
    claim
}

fn registered(name: &str) -> Value {
    let told = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({"status": {
        "providerID": format!("kwok://{name}"), "nodeName": name,
        "conditions": [told("Launched"), told("Registered"), told("Initialized")],
    }})
}

/// A pool, claims in several states, and a node that is ready and one that is not.
fn foreign_objects(world: &World) {
    let mut pool = node_pool(&json!({"metadata": {"name": FOREIGN}, "spec": {"weight": 100}}));
    pool["spec"]["template"]["spec"]["nodeClassRef"] = class();
    world.api.create(&Resource::NODE_POOLS, "", pool).unwrap();
    let held = json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}});
    let claims = Resource::NODE_CLAIMS;
    for (name, extra) in [
        ("launching", json!({})),
        ("ready", held.clone()),
        ("lost", held.clone()),
        ("going", held),
    ] {
        world.api.create(&claims, "", claim(name, &extra)).unwrap();
        if name != "launching" {
            world
                .api
                .patch_merge_status(&claims, "", name, registered(name))
                .unwrap();
        }
    }
    world.delete(&claims, "going");
    for name in ["ready", "going"] {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "finalizers": ["karpenter.sh/termination"],
                "labels": {
                    "karpenter.sh/nodepool": FOREIGN, "karpenter.sh/registered": "true",
                    "karpenter.sh/initialized": "true", "karpenter.kwok.sh/kwoknodeclass": "default",
                    "kubernetes.io/hostname": name,
                },
            },
            "spec": {
                "providerID": format!("kwok://{name}"),
                "taints": [{"key": "foreign", "effect": "NoSchedule"}],
            },
        });
        world.api.create(&Resource::NODES, "", node).unwrap();
        let room = json!({"cpu": "32", "memory": "64Gi", "pods": "100"});
        let status = json!({"status": {
            "capacity": room, "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        }});
        world
            .api
            .patch_merge_status(&Resource::NODES, "", name, status)
            .unwrap();
    }
    world.delete(&Resource::NODES, "going");
}

/// Versions of the objects that are not ours.
fn versions(world: &World) -> BTreeMap<String, String> {
    let kinds = [Resource::NODE_POOLS, Resource::NODE_CLAIMS, Resource::NODES];
    let objects = kinds.iter().flat_map(|kind| world.list(kind));
    let foreign = objects.filter(|it| it.to_string().contains("kwok"));
    foreign
        .map(|it| {
            let text = |path: &str| it.pointer(path).unwrap().as_str().unwrap().to_owned();
            let name = format!("{}/{}", text("/kind"), text("/metadata/name"));
            (name, text("/metadata/resourceVersion"))
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_another_provider_made_is_left_alone() {
    let mut world = World::new();
    foreign_objects(&world);
    let before = versions(&world);
    assert_eq!(before.len(), 7, "{before:?}");
    world.settle(60).await;
    world.create_pod("ours", "900m", &json!({}));
    let tolerates = json!({"spec": {"tolerations": [{"key": "foreign", "operator": "Exists"}]}});
    world.settle(1300).await;
    assert_eq!(versions(&world), before);
    assert_eq!(world.bound_pods(), 1, "our own work goes on");
    // The scheduler of this world keeps off tainted nodes, so the pod goes on asking.
    let launches = world.cloud.with(|it| it.launches);
    world.create_pod("guest", "16", &tolerates);
    world.settle(120).await;
    assert_eq!(
        world.cloud.with(|it| it.launches),
        launches,
        "there is room on their node"
    );
    world.restart();
    world.settle(120).await;
    assert_eq!(versions(&world), before);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_comes_back_as_anothers_is_forgotten() {
    let mut world = World::new();
    world.settle(5).await;
    let pools = Resource::NODE_POOLS;
    world
        .api
        .delete(&pools, "", "default", &DeleteOptions::default())
        .unwrap();
    let mut pool = node_pool(&json!({}));
    pool["spec"]["template"]["spec"]["nodeClassRef"] = class();
    world.api.create(&pools, "", pool).unwrap();
    let before = versions(&world);
    world.keep(1, "900m");
    world.settle(60).await;
    assert_eq!(world.cloud.with(|it| it.launches), 0);
    assert_eq!(versions(&world), before);
}
