//! Sick nodes that reboot in place.

use std::time::Duration;

use api_server::{NamespacedName, ObjectPart, Resource};
use apis::{GoDuration, RepairAction, RepairPolicy};
use cloudprovider::RebootError;
use serde_json::json;

use crate::renewal::repaired;
use crate::world::World;

const REBOOTING: &str = "Rebooting";
const TAINT: &str = "karpenter.sh/rebooting";

/// A world with one node and a pod on it, where hung devices are cured by a reboot.
async fn with_a_node(bound: Option<i64>) -> World {
    let mut world = World::with_settings(|settings| settings.feature_gates.node_repair = true);
    let policy = |kind: &str, reason: &str, action| RepairPolicy {
        condition_type: kind.to_owned(),
        condition_status: "False".to_owned(),
        reason_regex: reason.to_owned(),
        toleration: GoDuration::from_seconds(30),
        termination_grace_period: bound.map(GoDuration::from_seconds),
        priority: 0,
        action,
    };
    world.cloud.with(|state| {
        state.repair = vec![
            policy("Ready", "", RepairAction::Replace),
            policy("DevicesReady", ".*", RepairAction::Reboot),
        ];
    });
    world.restart();
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}));
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(90).await;
    assert_eq!(world.bound_pods(), 1);
    world
}

fn only_claim(world: &World) -> String {
    let claims = world.names(&Resource::NODE_CLAIMS);
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims[0].clone()
}

fn told(world: &World, claim: &str) -> (Option<String>, Option<String>) {
    let claims = &Resource::NODE_CLAIMS;
    (
        world.condition(claims, claim, REBOOTING),
        world.reason(claims, claim, REBOOTING),
    )
}

fn is(told: &(Option<String>, Option<String>), status: &str, reason: &str) -> bool {
    told.0.as_deref() == Some(status) && told.1.as_deref() == Some(reason)
}

#[tokio::test(start_paused = true)]
async fn a_sick_node_is_drained_and_reboots_in_place() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(50).await;
    assert!(world.is_tainted(&node, TAINT), "no pods come");
    assert!(is(&told(&world, &claim), "True", "RebootIssued"));
    let fault = world.in_condition(&Resource::NODE_CLAIMS, &claim, REBOOTING, "message");
    assert_eq!(fault.as_deref(), Some("rebooting for DevicesReady/Test"));
    assert_eq!(repaired(&world, "devices_ready", "graceful"), Some(1.0));
    let object = world.api.get(&Resource::NODES, "", &node).unwrap();
    assert!(object["metadata"]["labels"]["karpenter.sh/initialized"].is_null());
    assert!(world.event_reasons("Pod").contains(&"Evicted".to_owned()));
    assert_eq!(world.bound_pods(), 0);
    world.settle(90).await;
    assert!(is(&told(&world, &claim), "False", "RebootSucceeded"));
    let initialized = world.condition(&Resource::NODE_CLAIMS, &claim, "Initialized");
    assert_eq!(initialized.as_deref(), Some("True"));
    assert!(!world.is_tainted(&node, TAINT));
    assert_eq!(world.bound_pods(), 1);
    assert_eq!(world.cloud.with(|it| it.launches), 1, "nothing was bought");
    assert_eq!(world.cloud.with(|it| it.reboots.len()), 1);
    assert!(
        world
            .event_reasons("NodeClaim")
            .contains(&"RebootObserved".to_owned())
    );
    world.settle(60).await;
    let reason = world.condition(&Resource::NODE_CLAIMS, &claim, "DisruptionReason");
    assert_ne!(reason.as_deref(), Some("True"), "nothing of it is left");
}

#[tokio::test(start_paused = true)]
async fn a_reboot_whose_end_could_not_be_said_at_once_ends_all_the_same() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(50).await;
    assert!(is(&told(&world, &claim), "True", "RebootIssued"));
    let status = format!("/nodeclaims/{claim}/status");
    world.process.writes_fail(&status);
    world.settle(90).await;
    assert!(is(&told(&world, &claim), "True", "RebootIssued"));
    assert!(!world.is_tainted(&node, TAINT), "it is back");
    world.process.writes_succeed();
    world.settle(60).await;
    assert!(is(&told(&world, &claim), "False", "RebootSucceeded"));
    let initialized = world.condition(&Resource::NODE_CLAIMS, &claim, "Initialized");
    assert_eq!(initialized.as_deref(), Some("True"));
    assert_eq!(world.cloud.with(|it| it.launches), 1, "nothing was bought");
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_could_not_be_asked_for_is_recorded_and_asked_for_again() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    let status = format!("/nodeclaims/{claim}/status");
    world.process.writes_fail(&status);
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(60).await;
    assert_eq!(
        told(&world, &claim),
        (None, None),
        "it could not be written"
    );
    assert!(world.times_recorded("command-failed") > 0);
    world.tells("node", &node, &["command-failed", "asking for a reboot"]);
    world.process.writes_succeed();
    world.settle(120).await;
    assert!(is(&told(&world, &claim), "False", "RebootSucceeded"));
}

#[tokio::test(start_paused = true)]
async fn pods_that_may_not_leave_ride_through_a_bounded_reboot() {
    let mut world = with_a_node(Some(20)).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    let pod = world.names(&Resource::PODS)[0].clone();
    world.protect(&pod);
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(150).await;
    assert!(is(&told(&world, &claim), "False", "RebootSucceeded"));
    assert_eq!(world.names(&Resource::PODS), [pod], "the very same pod");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_come_back_is_replaced() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    world.cloud.with(|it| it.stays_away = true);
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(19 * 60).await;
    assert!(
        world.names(&Resource::NODE_CLAIMS).contains(&claim),
        "twenty minutes"
    );
    world.settle(5 * 60).await;
    assert!(!world.names(&Resource::NODE_CLAIMS).contains(&claim));
    assert_eq!(world.bound_pods(), 1);
    assert!(
        world
            .event_reasons("NodeClaim")
            .contains(&"RebootFailed".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_the_cloud_refuses_ends_in_a_replacement_at_once() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    let refusal = RebootError::Terminal("not allowed".to_owned());
    world.cloud.with(|it| it.reboot_error = Some(refusal));
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(150).await;
    assert!(!world.names(&Resource::NODE_CLAIMS).contains(&claim));
    assert_eq!(world.bound_pods(), 1);
    let told = world.event_messages("NodeClaim", "RebootFailed");
    assert_eq!(told, ["not allowed"]);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_does_not_answer_is_asked_again_for_a_while() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    let silence = RebootError::Other("throttled".to_owned());
    world.cloud.with(|it| it.reboot_error = Some(silence));
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(120).await;
    assert!(is(&told(&world, &claim), "True", "RebootRequested"));
    world.cloud.with(|it| it.reboot_error = None);
    world.settle(90).await;
    assert!(is(&told(&world, &claim), "False", "RebootSucceeded"));
}

#[tokio::test(start_paused = true)]
async fn a_bound_that_cannot_be_read_ends_the_reboot_and_keeps_the_node() {
    let mut world = with_a_node(Some(600)).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    let pdb = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
    });
    let pdbs = &Resource::POD_DISRUPTION_BUDGETS;
    world.api.create(pdbs, "default", pdb).unwrap();
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(50).await;
    assert!(is(&told(&world, &claim), "True", "RebootRequested"));
    // What was wrong is over, so that it is not asked for again.
    world.be_sick(&node, "DevicesReady", "True");
    let key = NamespacedName::new("", claim.as_str());
    world
        .api
        .modify(&Resource::NODE_CLAIMS, &key, |claim| {
            claim["metadata"]["annotations"]["karpenter.sh/reboot-termination-grace-period"] =
                json!("soon");
        })
        .unwrap();
    world.settle(30).await;
    assert!(is(&told(&world, &claim), "False", "RebootFailed"));
    assert!(!world.is_tainted(&node, TAINT));
    assert_eq!(world.cloud.with(|it| it.launches), 1);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_dies_on_the_way_sees_the_reboot_through() {
    for write in 1..=9 {
        let mut world = with_a_node(None).await;
        let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
        world.process.dies_at(Some(write));
        world.be_sick(&node, "DevicesReady", "False");
        world.settle(240).await;
        assert!(
            is(&told(&world, &claim), "False", "RebootSucceeded"),
            "{write}"
        );
        assert_eq!(world.bound_pods(), 1, "{write}");
        assert_eq!(world.cloud.with(|it| it.launches), 1, "{write}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_was_called_off_unseen_costs_no_node() {
    let mut world = with_a_node(None).await;
    let (claim, node) = (only_claim(&world), world.names(&Resource::NODES)[0].clone());
    world.cloud.with(|it| it.stays_away = true);
    world.be_sick(&node, "DevicesReady", "False");
    world.settle(19 * 60).await;
    let never = Duration::from_hours(1);
    world.process.watches_lag("/nodeclaims", never);
    let key = NamespacedName::new("", claim.as_str());
    world
        .api
        .modify_part(&Resource::NODE_CLAIMS, &key, ObjectPart::Status, |claim| {
            let conditions = claim["status"]["conditions"].as_array_mut().unwrap();
            conditions.retain(|it| it["type"] != REBOOTING);
        })
        .unwrap();
    world.settle(3 * 60).await;
    assert_eq!(world.names(&Resource::NODE_CLAIMS), [claim]);
}
