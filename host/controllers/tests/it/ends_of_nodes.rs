//! How nodes end: expiry, drains, finalizers, and nodes that never were of use.

use serde_json::{Value, json};
use sim::api_server::{DeleteOptions, NamespacedName, ObjectPart, Resource};

use crate::world::{World, node_pool};

async fn with_pods(pods: usize, cpu: &str) -> World {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(pods, cpu);
    world.settle(90).await;
    assert_eq!(world.bound_pods(), pods);
    world
}

/// How the pool's latest registrations went, as its condition tells.
fn health(world: &World) -> Option<String> {
    world.condition(&Resource::NODE_POOLS, "default", "NodeRegistrationHealthy")
}

fn modify(world: &World, resource: &Resource, name: &str, change: impl FnMut(&mut Value)) {
    let key = NamespacedName::new("", name);
    world.api.modify(resource, &key, change).unwrap();
}

#[tokio::test(start_paused = true)]
async fn nodes_born_together_expire_together_whatever_the_budget_and_no_pod_is_lost() {
    let mut world = World::new();
    world.change_pool(json!({"spec": {
        "template": {"spec": {"expireAfter": "5m"}},
        "disruption": {"budgets": [{"nodes": "0"}]},
    }}));
    world.pass(5).await;
    world.keep(3, "7");
    world.settle(120).await;
    let first = world.names(&Resource::NODES);
    let claims = world.names(&Resource::NODE_CLAIMS);
    assert_eq!((first.len(), claims.len()), (3, 3));
    world.settle(180).await;
    let later = world.names(&Resource::NODES);
    world.settle(90).await;
    let now = world.names(&Resource::NODES);
    assert!(
        first.iter().all(|it| !now.contains(it)),
        "{first:?} {later:?} {now:?}"
    );
    for claim in &claims {
        world.tells("claim", claim, &["claim-expired", "pod-evicted"]);
    }
    assert_eq!(world.bound_pods(), 3, "each was made up for");
    assert!(world.cloud.with(|it| it.launches) <= 6, "one for one");
}

#[tokio::test(start_paused = true)]
async fn expiry_ignores_do_not_disrupt_at_the_decision_and_the_drain_still_waits_for_it() {
    let mut world = World::new();
    world.change_pool(json!({"spec": {"template": {"spec": {"expireAfter": "3m"}}}}));
    world.pass(5).await;
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
    world.create_pod("a", "900m", &protected);
    world.settle(60).await;
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.settle(300).await;
    let object = world.api.get(&Resource::NODE_CLAIMS, "", &claim).unwrap();
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(world.cloud.running(), 1, "the pod is waited for");
    world.delete_pod("a");
    world.settle(60).await;
    assert_eq!(world.cloud.running(), 0);
}

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
    let delete = sim::api_server::DeleteOptions::default();
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
    let mut world = with_pods(1, "900m").await;
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
async fn a_drained_node_waits_for_its_volumes_to_be_detached() {
    let mut world = World::new();
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.settle(60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.attach_volume(&node);
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
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
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.settle(60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.attach_volume(&node);
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(100).await;
    assert_eq!(world.cloud.running(), 1);
    world.settle(60).await;
    assert_eq!(world.cloud.running(), 0);
    assert_eq!(world.times_recorded("termination-grace-period-elapsed"), 1);
    assert_eq!(world.times_recorded("termination-volumes-detached"), 0);
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

#[tokio::test(start_paused = true)]
async fn a_node_much_smaller_than_it_was_sold_as_is_noted() {
    let mut world = with_pods(1, "900m").await;
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

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_deleted_takes_its_nodes_with_it() {
    let mut world = with_pods(1, "900m").await;
    world.keep(0, "");
    world.delete(&Resource::NODE_POOLS, "default");
    world.settle(180).await;
    assert!(world.names(&Resource::NODE_CLAIMS).is_empty());
    assert!(world.names(&Resource::NODES).is_empty());
    assert_eq!(world.cloud.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_deleted_in_the_middle_of_a_command_ends_it_cleanly() {
    let mut world = with_pods(1, "900m").await;
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
    let mut world = with_pods(1, "900m").await;
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
    let mut world = with_pods(1, "900m").await;
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
async fn a_claim_that_comes_and_goes_within_a_second_leaves_nothing() {
    let mut world = World::new();
    world.pass(5).await;
    for round in 0..5 {
        world.create_pod(&format!("p{round}"), "900m", &json!({}));
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
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

#[tokio::test(start_paused = true)]
async fn a_window_of_a_whole_day_that_opens_daily_is_never_over() {
    let mut world = with_pods(1, "900m").await;
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
    let mut world = with_pods(1, "900m").await;
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
