//! Nodes that are sick, drifted or protected.

use std::sync::Arc;

use api_server::{NamespacedName, Resource};
use apis::{GoDuration, RepairAction, RepairPolicy};
use serde_json::{Value, json};

use crate::world::World;

const DRIFT: &str = "team";

fn drift() -> Value {
    json!({"spec": {"template": {"metadata": {"labels": {DRIFT: "a"}}}}})
}

fn policy(kind: &str, reason: &str, bound: Option<i64>) -> RepairPolicy {
    RepairPolicy {
        condition_type: kind.to_owned(),
        condition_status: "False".to_owned(),
        reason_regex: reason.to_owned(),
        toleration: GoDuration::from_seconds(120),
        termination_grace_period: bound.map(GoDuration::from_seconds),
        priority: 0,
        action: RepairAction::Replace,
    }
}

/// A world with repair, and so many nodes with a pod each.
async fn with_repair(nodes: usize, legacy: bool) -> World {
    let mut world = World::with_settings(|settings| {
        settings.feature_gates.node_repair = true;
        settings.legacy_node_repair = legacy;
    });
    world.cloud.with(|state| {
        state.repair = vec![
            policy("Ready", "", None),
            policy("DiskReady", ".*", Some(60)),
        ];
    });
    world.restart();
    world.pass(5).await;
    // One pod fills the largest type.
    world.keep(nodes, "7");
    world.settle(120).await;
    assert_eq!(world.names(&Resource::NODES).len(), nodes);
    world
}

fn protect(world: &World) {
    for pod in world.names(&Resource::PODS) {
        let annotations =
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}});
        world
            .api
            .patch_merge(&Resource::PODS, "default", &pod, annotations)
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_sick_node_is_replaced_once_it_was_sick_for_long_enough() {
    let mut world = with_repair(3, false).await;
    let sick = world.names(&Resource::NODES)[0].clone();
    world.be_sick(&sick, "Ready", "False");
    world.settle(110).await;
    assert_eq!(
        world.cloud.with(|it| it.launches),
        3,
        "two minutes are tolerated"
    );
    world.settle(30).await;
    assert_eq!(world.cloud.with(|it| it.launches), 4);
    assert!(
        world.names(&Resource::NODES).contains(&sick),
        "the replacement comes first"
    );
    world.settle(180).await;
    assert!(!world.names(&Resource::NODES).contains(&sick));
    assert_eq!(world.bound_pods(), 3);
    assert_eq!(world.cloud.running(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_recovers_in_time_stays() {
    let mut world = with_repair(1, false).await;
    let sick = world.names(&Resource::NODES)[0].clone();
    world.be_sick(&sick, "DiskReady", "False");
    world.settle(100).await;
    world.be_sick(&sick, "DiskReady", "True");
    world.settle(120).await;
    assert_eq!(world.cloud.with(|it| it.launches), 1);
}

/// Nodes whose claims belong to no pool.
async fn standalone(world: &mut World, names: &[&str]) -> Vec<String> {
    let before = world.names(&Resource::NODES);
    for name in names {
        let claim = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name},
            "spec": {
                "requirements": [],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "expireAfter": "Never",
            },
        });
        world.api.create(&Resource::NODE_CLAIMS, "", claim).unwrap();
    }
    world.settle(60).await;
    let mut nodes = world.names(&Resource::NODES);
    nodes.retain(|it| !before.contains(it));
    assert_eq!(nodes.len(), names.len());
    nodes
}

#[tokio::test(start_paused = true)]
async fn a_sick_node_of_no_pool_is_told_of_and_stays() {
    let mut world = with_repair(1, false).await;
    let alone = standalone(&mut world, &["a"]).await[0].clone();
    world.be_sick(&alone, "DiskReady", "False");
    world.settle(200).await;
    assert!(world.names(&Resource::NODES).contains(&alone));
    let told = world.event_messages("Node", "DisruptionBlocked");
    let told: Vec<_> = { told.iter() }
        .filter(|it| it.contains("is not repaired"))
        .collect();
    assert_eq!(
        told,
        [
            "Node doesn't have required label \"karpenter.sh/nodepool\"; condition DiskReady is not repaired"
        ]
    );
    world.tells("node", &alone, &["node-without-node-pool"]);
}

/// The old repair, nodes of the pool, and two sick ones of no pool.
async fn with_sick_strangers(of_pool: usize) -> (World, Vec<String>) {
    let mut world = with_repair(of_pool, true).await;
    let alone = standalone(&mut world, &["a", "b"]).await;
    for node in &alone {
        world.be_sick(node, "DiskReady", "False");
    }
    (world, alone)
}

#[tokio::test(start_paused = true)]
async fn the_old_repair_measures_nodes_without_pool_by_the_whole_cluster() {
    let (mut world, alone) = with_sick_strangers(4).await;
    world.settle(200).await;
    let left = world.names(&Resource::NODES);
    assert!(
        alone.iter().all(|it| !left.contains(it)),
        "two of six: {left:?}"
    );
    assert_eq!(left.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_old_repair_looks_again_after_five_minutes_when_too_many_are_sick() {
    let (mut world, alone) = with_sick_strangers(0).await;
    world.settle(150).await;
    world.be_sick(&alone[0], "DiskReady", "True");
    world.settle(200).await;
    assert_eq!(
        world.names(&Resource::NODES).len(),
        2,
        "it was blocked lately"
    );
    world.settle(180).await;
    assert_eq!(world.names(&Resource::NODES), [alone[0].clone()]);
}

#[tokio::test(start_paused = true)]
async fn a_bounded_repair_ends_what_protection_would_hold() {
    let mut world = with_repair(1, false).await;
    protect(&world);
    let sick = world.names(&Resource::NODES)[0].clone();
    world.be_sick(&sick, "DiskReady", "False");
    world.settle(150).await;
    assert_eq!(
        world.cloud.with(|it| it.launches),
        2,
        "a replacement is on its way"
    );
    assert_eq!(
        repaired(&world, "disk_ready", "eventual"),
        None,
        "not gone yet"
    );
    world.settle(200).await;
    assert!(!world.names(&Resource::NODES).contains(&sick));
    assert_eq!(world.bound_pods(), 1);
    assert_eq!(repaired(&world, "disk_ready", "eventual"), Some(1.0));
}

/// How often a claim went because of a condition of its node.
pub(crate) fn repaired(world: &World, condition: &str, mode: &str) -> Option<f64> {
    let labels = format!(
        "condition=\"{condition}\",nodepool=\"default\",capacity_type=\"on-demand\",\
         image_id=\"image-1\",termination_mode=\"{mode}\""
    );
    world.series(&format!(
        "karpenter_nodeclaims_unhealthy_disrupted_total{{{labels}}}"
    ))
}

#[tokio::test(start_paused = true)]
async fn an_unbounded_repair_waits_for_what_is_protected_and_says_so() {
    let mut world = with_repair(1, false).await;
    protect(&world);
    let sick = world.names(&Resource::NODES)[0].clone();
    world.be_sick(&sick, "Ready", "False");
    world.settle(240).await;
    assert_eq!(world.cloud.with(|it| it.launches), 1);
    assert!(
        world
            .event_reasons("Node")
            .contains(&"DisruptionBlocked".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn when_too_many_are_sick_none_is_repaired() {
    let mut world = with_repair(3, false).await;
    for node in &world.names(&Resource::NODES)[..2] {
        world.be_sick(node, "DiskReady", "False");
    }
    world.settle(240).await;
    assert_eq!(world.cloud.with(|it| it.launches), 3);
    for kind in ["Node", "NodeClaim", "NodePool"] {
        let told = world.event_reasons(kind);
        assert!(told.contains(&"NodeRepairBlocked".to_owned()), "{kind}");
    }
    let second = world.names(&Resource::NODES)[1].clone();
    world.be_sick(&second, "DiskReady", "True");
    world.settle(200).await;
    assert_eq!(
        world.cloud.with(|it| it.launches),
        4,
        "with one sick it goes on"
    );
}

#[tokio::test(start_paused = true)]
async fn do_not_repair_is_a_veto_and_do_not_disrupt_is_not() {
    for (annotation, stays) in [("do-not-repair", true), ("do-not-disrupt", false)] {
        let mut world = with_repair(1, false).await;
        let sick = world.names(&Resource::NODES)[0].clone();
        let change =
            json!({"metadata": {"annotations": {format!("karpenter.sh/{annotation}"): "true"}}});
        world
            .api
            .patch_merge(&Resource::NODES, "", &sick, change)
            .unwrap();
        world.be_sick(&sick, "DiskReady", "False");
        world.settle(300).await;
        assert_eq!(
            world.names(&Resource::NODES).contains(&sick),
            stays,
            "{annotation}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_legacy_way_takes_the_node_by_force_and_asks_no_budget() {
    let mut world = with_repair(1, true).await;
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    protect(&world);
    let sick = world.names(&Resource::NODES)[0].clone();
    world.be_sick(&sick, "Ready", "False");
    world.settle(110).await;
    assert!(world.names(&Resource::NODES).contains(&sick));
    world.settle(120).await;
    assert!(!world.names(&Resource::NODES).contains(&sick));
    assert_eq!(repaired(&world, "ready", "graceful"), Some(1.0));
    world.settle(120).await;
    assert_eq!(world.bound_pods(), 1);
}

#[tokio::test(start_paused = true)]
async fn protection_that_comes_late_saves_the_node_and_takes_the_command_back() {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(90).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.change_pool(drift());
    world.settle(15).await;
    assert!(
        world.is_tainted(&node, "karpenter.sh/disrupted"),
        "the command began"
    );
    protect(&world);
    world.settle(200).await;
    assert!(world.names(&Resource::NODES).contains(&node));
    assert!(
        !world.is_tainted(&node, "karpenter.sh/disrupted"),
        "and was taken back"
    );
    assert_eq!(world.bound_pods(), 1);
    assert_eq!(world.cloud.running(), 1, "what came in vain goes");
}

#[tokio::test(start_paused = true)]
async fn protection_for_a_time_ends_with_it() {
    let mut world = World::new();
    world.pass(5).await;
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "5m"}}});
    world.create_pod("a", "900m", &protected);
    world.settle(60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.change_pool(drift());
    world.settle(180).await;
    assert!(
        !world.is_tainted(&node, "karpenter.sh/disrupted"),
        "five minutes from its start"
    );
    world.settle(240).await;
    assert!(!world.names(&Resource::NODES).contains(&node));
}

#[tokio::test(start_paused = true)]
async fn protection_that_cannot_be_read_protects_nothing() {
    for value in ["soon", "0s", "-5m", "false"] {
        let mut world = World::new();
        world.pass(5).await;
        let unread = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}});
        world.create_pod("a", "900m", &unread);
        world.settle(60).await;
        let node = world.names(&Resource::NODES)[0].clone();
        world.change_pool(drift());
        world.settle(180).await;
        assert!(!world.names(&Resource::NODES).contains(&node), "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn marks_that_nobody_owns_are_taken_off() {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(1, "900m");
    world.settle(60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world
        .api
        .modify(
            &Resource::NODES,
            &NamespacedName::new("", node.as_str()),
            |node| {
                node["spec"]["taints"] =
                    json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
            },
        )
        .unwrap();
    world.settle(30).await;
    assert!(!world.is_tainted(&node, "karpenter.sh/disrupted"));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_closes_stops_the_next_node_but_not_the_one_under_way() {
    let mut world = World::new();
    world.pass(5).await;
    world.keep(2, "7");
    world.settle(90).await;
    world.change_pool(drift());
    world.settle(15).await;
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}));
    world.settle(300).await;
    assert_eq!(
        world.cloud.with(|it| it.launches),
        3,
        "one of two was replaced"
    );
    assert_eq!(world.bound_pods(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_empty_node_that_fills_while_its_end_is_checked_stays() {
    let mut world = World::new();
    world.pass(5).await;
    world.create_pod("a", "900m", &json!({}));
    world.settle(60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    world.delete_pod("a");
    // Thirty seconds of consolidateAfter, at most ten until the next look, fifteen of validation.
    world.settle(42).await;
    world.create_pod("b", "900m", &json!({}));
    world.settle(120).await;
    assert_eq!(world.names(&Resource::NODES), std::slice::from_ref(&node));
    assert_eq!(world.cloud.with(|it| it.launches), 1);
    assert_eq!(world.bound_pods(), 1);
    world.tells(
        "node",
        &node,
        &[
            "command-rejected",
            "node-invalidated-churn",
            "is no longer eligible",
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_falls_empty_between_two_looks_does_not_wait_for_the_next() {
    for moment in 0..10 {
        let mut world = World::new();
        let at_once = json!({"spec": {"disruption": {"consolidateAfter": "0s"}}});
        world.change_pool(at_once);
        world.pass(5).await;
        world.create_pod("a", "900m", &json!({}));
        world.settle(60 + moment).await;
        let node = world.names(&Resource::NODES)[0].clone();
        world.delete_pod("a");
        // Two seconds until the pod's fellows would be gone too, fifteen of validation.
        world.pass(19).await;
        let is_going = world.is_tainted(&node, "karpenter.sh/disrupted");
        assert!(
            is_going || world.names(&Resource::NODES).is_empty(),
            "{moment}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_ranked_for_scale_downs_while_the_gate_is_open_only() {
    for is_open in [true, false] {
        let mut world = World::with_settings(|settings| {
            settings.feature_gates.pod_deletion_cost_management = is_open;
        });
        world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}));
        world.pass(5).await;
        world.keep(2, "7");
        let mut pending = Vec::new();
        for _ in 0..180 {
            world.settle(1).await;
            let name = "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes";
            pending.extend(world.series(&format!("{name}{{nodepool=\"default\"}}")));
        }
        assert_eq!(pending.contains(&2.0), is_open, "{pending:?}");
        let mut costs: Vec<Option<String>> = world
            .list(&Resource::PODS)
            .iter()
            .map(|pod| {
                let annotations = &pod["metadata"]["annotations"];
                let cost = annotations["controller.kubernetes.io/pod-deletion-cost"].as_str();
                cost.map(str::to_owned)
            })
            .collect();
        costs.sort();
        let expected = if is_open {
            vec![Some("-1".to_owned()), Some("-2".to_owned())]
        } else {
            vec![None, None]
        };
        assert_eq!(costs, expected);
    }
}

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

fn costs(world: &World) -> Vec<Option<String>> {
    let pods = world.list(&Resource::PODS);
    let cost = |pod: &Arc<Value>| {
        pod["metadata"]["annotations"][COST]
            .as_str()
            .map(str::to_owned)
    };
    pods.iter().map(cost).collect()
}

#[tokio::test(start_paused = true)]
async fn a_rank_that_somebody_changed_is_written_again_and_one_that_stands_is_not_asked_for() {
    let mut world = World::with_settings(|settings| {
        settings.feature_gates.pod_deletion_cost_management = true;
    });
    world.change_pool(json!({"spec": {"disruption": {"budgets": [{"nodes": "100%"}]}}}));
    world.pass(5).await;
    world.keep(2, "7");
    world.settle(180).await;
    let ranked = costs(&world);
    let pod = world.names(&Resource::PODS)[0].clone();
    let changed = json!({"metadata": {"annotations": {COST: "5"}}});
    world
        .api
        .patch_merge(&Resource::PODS, "default", &pod, changed)
        .unwrap();
    // Looked at again whenever consolidation would, every five minutes at least.
    world.settle(400).await;
    assert_eq!(costs(&world), ranked);
    world.restart();
    world.settle(120).await;
    assert_eq!(costs(&world), ranked);
    let unchanged =
        "karpenter_pod_deletion_cost_pod_annotation_writes_total{result=\"skipped_unchanged\"}";
    assert_eq!(world.series(unchanged), None, "the list has told them all");
}
