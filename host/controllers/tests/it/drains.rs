//! What a drain waits for: critical pods, PodDisruptionBudgets, volumes; and what it does not wait for.

use api_server::{DeleteOptions, Resource};
use serde_json::{Value, json};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn critical_pods_leave_last() {
    let mut world = World::new();
    world.pass(5).await;
    let critical = json!({"spec": {"priorityClassName": "system-cluster-critical"}});
    world.create_pod("critical", "100m", &critical);
    // Held, so that the order shows.
    world.create_pod("plain", "100m", &json!({}));
    let pdb = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "plain", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"step": "plain"}}},
    });
    let label = json!({"metadata": {"labels": {"step": "plain"}}});
    world
        .api
        .patch_merge(&Resource::PODS, "default", "plain", label)
        .unwrap();
    world
        .api
        .create(&Resource::POD_DISRUPTION_BUDGETS, "default", pdb)
        .unwrap();
    world.settle(90).await;
    assert_eq!(world.bound_pods(), 2);
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(60).await;
    let left = world.names(&Resource::PODS);
    assert!(
        left.contains(&"critical".to_owned()),
        "it waits for its turn: {left:?}"
    );
    let delete = DeleteOptions::default();
    world
        .api
        .delete(
            &Resource::POD_DISRUPTION_BUDGETS,
            "default",
            "plain",
            &delete,
        )
        .unwrap();
    world.settle(90).await;
    assert_eq!(world.cloud.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn pods_that_tolerate_the_taint_do_not_hold_the_drain() {
    let mut world = World::new();
    world.pass(5).await;
    let tolerates =
        json!({"spec": {"tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}});
    world.create_pod("a", "900m", &tolerates);
    world.settle(60).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    let node = world.names(&Resource::NODES)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(60).await;
    assert!(!world.names(&Resource::NODES).contains(&node));
    assert!(!world.event_reasons("Pod").contains(&"Evicted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_waits_for_its_volumes_to_be_detached() {
    let mut world = World::new();
    world.delete_node_with_volume().await;
    world.settle(60).await;
    assert!(world.names(&Resource::PODS).is_empty(), "drained");
    assert_eq!(world.cloud.running(), 1, "but not terminated");
    assert!(
        world
            .event_reasons("Node")
            .contains(&"AwaitingVolumeDetachment".to_owned())
    );
    world.delete(&Resource::VOLUME_ATTACHMENTS, "va");
    world.settle(30).await;
    assert_eq!(world.cloud.running(), 0);
    assert_eq!(world.times_recorded("termination-volumes-detached"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_ends_the_wait_for_volumes_too() {
    let mut world = World::new();
    world.change_pool(json!({"spec": {"template": {"spec": {"terminationGracePeriod": "2m"}}}}));
    world.delete_node_with_volume().await;
    world.settle(100).await;
    assert_eq!(world.cloud.running(), 1);
    world.settle(60).await;
    assert_eq!(world.cloud.running(), 0);
    assert_eq!(world.times_recorded("termination-grace-period-elapsed"), 1);
    assert_eq!(world.times_recorded("termination-volumes-detached"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_step_whose_write_meets_a_conflict_is_told_once() {
    for (written, outcome) in [
        (r#""status":"True","type":"Drained""#, "termination-drained"),
        (
            r#""status":"True","type":"VolumesDetached""#,
            "termination-volumes-detached",
        ),
        (
            r#""status":"False","type":"VolumesDetached""#,
            "termination-grace-period-elapsed",
        ),
    ] {
        let mut world = World::new();
        let is_late = outcome == "termination-grace-period-elapsed";
        if is_late {
            let spec = json!({"terminationGracePeriod": "2m"});
            world.change_pool(json!({"spec": {"template": {"spec": spec}}}));
        }
        let claims = "/apis/karpenter.sh/v1/nodeclaims/";
        world.process.conflicts(claims, written, 1);
        world.delete_node_with_volume().await;
        world.settle(60).await;
        if is_late {
            world.settle(100).await;
        } else {
            world.delete(&Resource::VOLUME_ATTACHMENTS, "va");
            world.settle(30).await;
        }
        assert_eq!(world.cloud.running(), 0, "{outcome}");
        assert_eq!(world.process.conflicts_left(), 0, "{outcome}");
        assert_eq!(world.times_recorded(outcome), 1, "{outcome}");
    }
}

/// A PodDisruptionBudget that lets one pod go.
fn budget(world: &World, name: &str, selector: &Value) {
    let pdb = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector}},
    });
    let pdbs = Resource::POD_DISRUPTION_BUDGETS;
    world.api.create(&pdbs, "default", pdb).unwrap();
    allow_one(world, name);
}

fn allow_one(world: &World, budget: &str) {
    let pdbs = Resource::POD_DISRUPTION_BUDGETS;
    let status = json!({"status": {
        "observedGeneration": 1, "disruptionsAllowed": 1,
        "currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 2,
    }});
    world
        .api
        .patch_merge_status(&pdbs, "default", budget, status)
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pod_under_two_budgets_holds_its_node_and_says_why_until_one_is_gone() {
    let mut world = World::with_pods(1, "900m").await;
    world.change_pool(json!({"spec": {"disruption": {
        "consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s",
    }}}));
    for name in ["first", "second"] {
        budget(&world, name, &json!({"app": "kept"}));
    }
    world.settle(30).await;
    let told = world.event_messages("Node", "DisruptionBlocked");
    let words = "Eviction does not support multiple PDBs (PodDisruptionBudget=[default/first default/second])";
    assert!(told.iter().any(|it| it == words), "{told:?}");
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(120).await;
    assert!(world.names(&Resource::NODE_CLAIMS).contains(&claim));
    assert_eq!(world.bound_pods(), 1, "nothing was lost");
    let pdbs = Resource::POD_DISRUPTION_BUDGETS;
    let options = DeleteOptions::default();
    world
        .api
        .delete(&pdbs, "default", "second", &options)
        .unwrap();
    world.settle(180).await;
    assert!(!world.names(&Resource::NODE_CLAIMS).contains(&claim));
    assert_eq!(world.bound_pods(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_budget_over_two_workloads_lets_their_pods_go_one_after_the_other() {
    let mut world = World::new();
    world.pass(5).await;
    for (name, app) in [("a", "web"), ("b", "api")] {
        let labels = json!({"metadata": {"labels": {"app": app, "tier": "front"}}});
        world.create_pod(name, "900m", &labels);
    }
    world.settle(60).await;
    assert_eq!(world.bound_pods(), 2);
    budget(&world, "front", &json!({"tier": "front"}));
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(90).await;
    assert_eq!(world.names(&Resource::PODS).len(), 1, "the first of them");
    assert!(world.names(&Resource::NODE_CLAIMS).contains(&claim));
    assert_eq!(world.times_recorded("pod-eviction-blocked"), 1);
    allow_one(&world, "front");
    world.settle(60).await;
    assert!(world.names(&Resource::PODS).is_empty());
    assert!(!world.names(&Resource::NODE_CLAIMS).contains(&claim));
}
