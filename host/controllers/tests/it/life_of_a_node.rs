//! From a pending pod to a node, and back to nothing.

use std::collections::BTreeMap;

use api_server::{DeleteOptions, Resource};
use cloudprovider::Registrable;
use serde_json::{Value, json};

use crate::world::{World, node_class};

async fn with_pods(names: &[&str]) -> World {
    let world = World::new();
    world.pass(5).await;
    for name in names {
        world.create_pod(name, "900m", &json!({}));
    }
    world
        .until("pods are bound", 120, |world| {
            world.bound_pods() == names.len()
        })
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn pending_pods_become_one_node_that_goes_when_they_are_gone() {
    let world = with_pods(&["a", "b", "c", "d"]).await;
    assert_eq!(
        world.cloud.with(|state| state.launches),
        1,
        "one batch, one node"
    );
    let claims = world.names(&Resource::NODE_CLAIMS);
    world
        .until("the claim is ready", 30, |world| {
            world
                .condition(&Resource::NODE_CLAIMS, &claims[0], "Ready")
                .as_deref()
                == Some("True")
        })
        .await;
    let node = world.list(&Resource::NODES)[0].clone();
    assert_eq!(
        node["metadata"]["labels"]["karpenter.sh/initialized"],
        "true"
    );
    assert_eq!(
        node["metadata"]["labels"]["karpenter.sh/nodepool"],
        "default"
    );
    assert_eq!(
        node["metadata"]["labels"]["node.kubernetes.io/instance-type"],
        "t.medium"
    );
    assert!(world.event_reasons("Pod").contains(&"Nominated".to_owned()));
    for name in ["a", "b", "c", "d"] {
        world.delete_pod(name);
    }
    let took = world
        .until("everything is gone", 300, |world| {
            world.names(&Resource::NODE_CLAIMS).is_empty()
                && world.names(&Resource::NODES).is_empty()
                && world.cloud.running() == 0
        })
        .await;
    assert!(
        (30..120).contains(&took),
        "not before consolidateAfter: {took}"
    );
    assert!(
        world
            .event_reasons("Node")
            .contains(&"DisruptionTerminating".to_owned())
    );
    world
        .until("idle", 60, |world| world.controllers.is_idle())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_node_is_drained_and_its_pods_move_to_a_new_one() {
    let world = with_pods(&["a", "b"]).await;
    let old = world.names(&Resource::NODES);
    world
        .api
        .delete(&Resource::NODES, "", &old[0], &DeleteOptions::default())
        .unwrap();
    // What a ReplicaSet would do: make up for the evicted.
    world
        .until("pods are evicted", 60, |world| {
            world.names(&Resource::PODS).is_empty()
        })
        .await;
    assert!(world.event_reasons("Pod").contains(&"Evicted".to_owned()));
    world.create_pod("a2", "900m", &json!({}));
    world.create_pod("b2", "900m", &json!({}));
    world
        .until("pods are bound elsewhere", 180, |world| {
            world.bound_pods() == 2 && !world.names(&Resource::NODES).contains(&old[0])
        })
        .await;
    world
        .until("one instance is left", 60, |world| {
            world.cloud.running() == 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_allows_nothing_holds_the_drain_until_it_gives_way() {
    let world = with_pods(&["a"]).await;
    let pdbs = Resource::POD_DISRUPTION_BUDGETS;
    let pdb = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
    });
    world.api.create(&pdbs, "default", pdb).unwrap();
    let claims = world.names(&Resource::NODE_CLAIMS);
    let nodes = world.names(&Resource::NODES);
    world
        .api
        .delete(
            &Resource::NODE_CLAIMS,
            "",
            &claims[0],
            &DeleteOptions::default(),
        )
        .unwrap();
    world.pass(120).await;
    assert_eq!(world.bound_pods(), 1, "the budget holds");
    assert_eq!(world.cloud.running(), 1);
    assert!(
        world
            .event_reasons("Node")
            .contains(&"FailedDraining".to_owned())
    );
    world
        .api
        .delete(&pdbs, "default", "web", &DeleteOptions::default())
        .unwrap();
    world
        .until("the node is gone", 60, |world| {
            !world.names(&Resource::NODES).contains(&nodes[0])
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_ends_a_drain_that_protection_would_hold_for_ever() {
    let world = World::new();
    let grace = json!({"spec": {"template": {"spec": {"terminationGracePeriod": "5m"}}}});
    world
        .api
        .patch_merge(&Resource::NODE_POOLS, "", "default", grace)
        .unwrap();
    world.pass(5).await;
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    world.create_pod("a", "900m", &protected);
    world
        .until("bound", 120, |world| world.bound_pods() == 1)
        .await;
    let claims = world.names(&Resource::NODE_CLAIMS);
    world
        .api
        .delete(
            &Resource::NODE_CLAIMS,
            "",
            &claims[0],
            &DeleteOptions::default(),
        )
        .unwrap();
    world.pass(280).await;
    assert_eq!(
        world.bound_pods(),
        1,
        "protected until its grace period before the deadline"
    );
    let took = world
        .until("gone", 60, |world| world.cloud.running() == 0)
        .await;
    assert!(took < 60);
    assert!(world.event_reasons("Pod").contains(&"Disrupted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn controllers_that_restart_in_the_middle_launch_nothing_twice() {
    for seconds in [1, 3, 5, 15, 25, 33] {
        let mut world = World::new();
        world.pass(5).await;
        world.create_pod("a", "900m", &json!({}));
        world.pass(seconds).await;
        world.restart();
        world
            .until("bound", 180, |world| world.bound_pods() == 1)
            .await;
        assert_eq!(
            world.cloud.with(|state| state.launches),
            1,
            "restart after {seconds} s"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_class_in_use_stays_until_its_last_claim_is_gone() {
    let world = with_pods(&["a"]).await;
    let classes = Resource::EC2_NODE_CLASSES;
    world
        .api
        .delete(&classes, "", "default", &DeleteOptions::default())
        .unwrap();
    world.pass(60).await;
    assert_eq!(world.names(&classes), ["default"]);
    world
        .until("the pool is not ready", 30, |world| {
            world
                .condition(&Resource::NODE_POOLS, "default", "Ready")
                .as_deref()
                == Some("False")
        })
        .await;
    world.delete_pod("a");
    let claims = world.names(&Resource::NODE_CLAIMS);
    world
        .api
        .delete(
            &Resource::NODE_CLAIMS,
            "",
            &claims[0],
            &DeleteOptions::default(),
        )
        .unwrap();
    world
        .until("the class is gone", 120, |world| {
            world.names(&classes).is_empty()
        })
        .await;
    assert_eq!(world.cloud.with(|state| state.released), 1);
    world.api.create(&classes, "", node_class()).unwrap();
    world
        .until("the pool is ready again", 30, |world| {
            world
                .condition(&Resource::NODE_POOLS, "default", "Ready")
                .as_deref()
                == Some("True")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_a_class_that_is_not_known_to_be_ready() {
    let mut world = World::new();
    world
        .cloud
        .with(|state| state.leaves_classes_unknown = true);
    let mut class = node_class();
    class["metadata"]["name"] = json!("late");
    world
        .api
        .create(&Resource::EC2_NODE_CLASSES, "", class)
        .unwrap();
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "alone"},
        "spec": {
            "requirements": [],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "late"},
            "expireAfter": "Never",
        },
    });
    world.api.create(&Resource::NODE_CLAIMS, "", claim).unwrap();
    world.pass(60).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), ["alone"]);
    assert_eq!(world.cloud.with(|state| state.launches), 0);
    world
        .cloud
        .with(|state| state.leaves_classes_unknown = false);
    world.restart();
    world
        .until("launched", 120, |world| {
            world.cloud.with(|state| state.launches) == 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_pool_tells_what_its_nodes_add_up_to() {
    let world = with_pods(&["a"]).await;
    world
        .until("counted", 30, |world| {
            let pool = world.api.get(&Resource::NODE_POOLS, "", "default").unwrap();
            pool["status"]["nodes"] == 1 && pool["status"]["resources"]["cpu"] == "2"
        })
        .await;
    let pool = world.api.get(&Resource::NODE_POOLS, "", "default").unwrap();
    let hash = &pool["metadata"]["annotations"]["karpenter.sh/nodepool-hash"];
    let claim = &world.list(&Resource::NODE_CLAIMS)[0];
    assert_eq!(
        &claim["metadata"]["annotations"]["karpenter.sh/nodepool-hash"],
        hash
    );
}

#[tokio::test(start_paused = true)]
async fn drifted_nodes_are_replaced_before_they_go() {
    let world = with_pods(&["a"]).await;
    let old = world.names(&Resource::NODE_CLAIMS);
    world
        .until("quiet", 60, |world| world.controllers.is_idle())
        .await;
    let changed = json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}});
    world
        .api
        .patch_merge(&Resource::NODE_POOLS, "", "default", changed)
        .unwrap();
    world
        .until("marked", 30, |world| {
            world
                .condition(&Resource::NODE_CLAIMS, &old[0], "Drifted")
                .as_deref()
                == Some("True")
        })
        .await;
    world
        .until("a replacement is launched", 60, |world| {
            world.cloud.with(|state| state.launches) == 2
        })
        .await;
    assert!(
        world.names(&Resource::NODE_CLAIMS).contains(&old[0]),
        "replacement first"
    );
    world
        .until("the old one is gone", 180, |world| {
            !world.names(&Resource::NODE_CLAIMS).contains(&old[0])
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn equal_runs_leave_equal_ledgers() {
    let mut ledgers = Vec::new();
    for _ in 0..2 {
        let world = with_pods(&["a", "b", "c"]).await;
        world.delete_pod("b");
        world.pass(300).await;
        ledgers.push(world.ledger_json());
    }
    assert!(!ledgers[0].is_empty());
    assert_eq!(ledgers[0], ledgers[1]);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_long_grace_period_is_noted_on_the_claim() {
    let mut world = World::new();
    let never = json!({"spec": {"disruption": {"consolidateAfter": "Never"}}});
    world.change_pool(never);
    world.pass(5).await;
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    world.create_pod("a", "900m", &held);
    world.settle(90).await;
    assert_eq!(world.bound_pods(), 1);
    world.delete_pod("a");
    world.settle(60).await;
    let ended = world.clock.now();
    let pods = Resource::PODS;
    let succeeded = json!({"status": {"phase": "Succeeded"}});
    world
        .api
        .patch_merge_status(&pods, "default", "a", succeeded)
        .unwrap();
    world.settle(5).await;
    let claim = world.list(&Resource::NODE_CLAIMS)[0].clone();
    let noted = claim["status"]["lastPodEventTime"].as_str().unwrap();
    let noted: jiff::Timestamp = noted.parse().unwrap();
    assert!(noted.as_second() >= ended.as_second(), "{noted} {ended}");
}

const HOOK: &str = "PlacementGroupRegistrationHook";
const PARTITION: &str = "karpenter.k8s.aws/placement-group-partition";

fn taint_keys(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    taints.filter_map(|it| it["key"].as_str()).collect()
}

fn hold_registrations_back(world: &World) {
    let pending = Registrable::Pending(HOOK);
    world.cloud.with(|it| it.registrable = Some(pending));
}

/// A pod waits for a node that may not register.
async fn held_back() -> World {
    let mut world = World::new();
    world.pass(5).await;
    hold_registrations_back(&world);
    world.create_pod("a", "900m", &json!({}));
    world.settle(120).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_once_the_provider_lets_it() {
    let mut world = held_back().await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let reason = world.reason(&Resource::NODE_CLAIMS, &claim, "Registered");
    assert_eq!(reason.as_deref(), Some("RegistrationHookPending"));
    let name = world.names(&Resource::NODES)[0].clone();
    let node = || world.api.get(&Resource::NODES, "", &name).unwrap();
    assert!(taint_keys(&node()).contains(&"karpenter.sh/unregistered"));
    let label = |object: &Value, key: &str| object["metadata"]["labels"][key].clone();
    assert_eq!(label(&node(), "karpenter.sh/nodepool"), "default", "synced");
    assert_eq!(label(&node(), "karpenter.sh/registered"), Value::Null);
    assert_eq!(world.bound_pods(), 0);
    world.cloud.with(|it| {
        let labels = BTreeMap::from([(PARTITION.to_owned(), "2".to_owned())]);
        it.registrable = Some(Registrable::Ready(labels));
    });
    world.settle(30).await;
    let node = || world.api.get(&Resource::NODES, "", &name).unwrap();
    assert!(!taint_keys(&node()).contains(&"karpenter.sh/unregistered"));
    assert_eq!(label(&node(), PARTITION), "2");
    let claim = world.api.get(&Resource::NODE_CLAIMS, "", &claim).unwrap();
    assert_eq!(label(&claim, PARTITION), "2");
    assert_eq!(world.bound_pods(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_provider_never_lets_register_is_given_up() {
    let mut world = held_back().await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.settle(12 * 60).await;
    assert!(world.names(&Resource::NODE_CLAIMS).contains(&claim));
    world.cloud.with(|it| it.registrable = None);
    world.settle(30).await;
    assert_eq!(world.bound_pods(), 1, "still in time");

    hold_registrations_back(&world);
    world.create_pod("b", "3", &json!({}));
    world.settle(60).await;
    let mut claims = world.names(&Resource::NODE_CLAIMS);
    claims.retain(|it| *it != claim);
    world.settle(16 * 60).await;
    assert!(!world.names(&Resource::NODE_CLAIMS).contains(&claims[0]));
    world.tells("claim", &claims[0], &["claim-registration-timeout"]);
}
