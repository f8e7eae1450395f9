//! What dashboards and `kubectl describe` show of disruption.

use api_server::Resource;
use serde_json::{Value, json};

use crate::world::{World, node_pool};

/// A world whose pool is disrupted that way.
async fn with_disruption(disruption: Value) -> World {
    let world = World::new();
    world.change_pool(json!({"spec": {"disruption": disruption}}));
    world.pass(5).await;
    world
}

#[tokio::test(start_paused = true)]
async fn budgets_are_shown_of_every_pool_there_is_and_of_no_other() {
    let mut world = with_disruption(json!({"budgets": [{"nodes": "3"}]})).await;
    let other = node_pool(&json!({"metadata": {"name": "other"}}));
    world.api.create(&Resource::NODE_POOLS, "", other).unwrap();
    world.settle(15).await;
    let allowed = |world: &World, pool: &str| {
        let labels = format!("{{nodepool=\"{pool}\",reason=\"empty\"}}");
        world.series(&format!("karpenter_nodepools_allowed_disruptions{labels}"))
    };
    assert_eq!(allowed(&world, "default"), Some(3.0), "without any node");
    assert_eq!(allowed(&world, "other"), Some(0.0), "a tenth of no nodes");
    world.delete(&Resource::NODE_POOLS, "other");
    world.settle(30).await;
    assert_eq!(allowed(&world, "default"), Some(3.0));
    assert_eq!(allowed(&world, "other"), None);
}

#[tokio::test(start_paused = true)]
async fn nodes_that_consume_budgets_are_not_shown_after_they_are_gone() {
    let mut world = with_disruption(json!({})).await;
    world.create_pod("a", "5", &json!({}));
    world.settle(60).await;
    let node = world.names(&Resource::NODES)[0].clone();
    let consuming = |world: &World| {
        let labels = "{nodepool=\"default\",reason=\"empty\"}";
        world.series(&format!(
            "karpenter_nodepools_nodes_consuming_budgets{labels}"
        ))
    };
    assert_eq!(consuming(&world), Some(0.0));
    world.be_sick(&node, "Ready", "False");
    world.settle(15).await;
    assert_eq!(consuming(&world), Some(1.0));
    world.delete_pod("a");
    let claim = world.names(&Resource::NODE_CLAIMS)[0].clone();
    world.delete(&Resource::NODE_CLAIMS, &claim);
    world.settle(60).await;
    assert_eq!(world.cloud.running(), 0);
    assert_eq!(consuming(&world), Some(0.0), "the last node is gone");
}

#[tokio::test(start_paused = true)]
async fn every_method_is_timed_by_itself() {
    let mut world = with_disruption(json!({})).await;
    world.settle(25).await;
    for kind in ["multi", "single"] {
        let name = "karpenter_voluntary_disruption_consolidation_timeouts_total";
        let times = world.series(&format!("{name}{{consolidation_type=\"{kind}\"}}"));
        assert_eq!(times, Some(0.0), "{kind}");
    }
    for (reason, kind, is_run) in [
        ("empty", "empty", true),
        ("drifted", "", true),
        ("underutilized", "multi", true),
        ("underutilized", "single", true),
        ("unhealthy", "", false),
    ] {
        let name = "karpenter_voluntary_disruption_decision_evaluation_duration_seconds_count";
        let labels = format!("{{reason=\"{reason}\",consolidation_type=\"{kind}\"}}");
        let times = world.series(&format!("{name}{labels}"));
        assert_eq!(
            times.is_some_and(|it| it >= 2.0),
            is_run,
            "{labels} {times:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_came_is_not_counted_as_failed() {
    for comes in [true, false] {
        let mut world = with_disruption(json!({})).await;
        world.create_pod("a", "900m", &json!({}));
        world.settle(60).await;
        world.change_pool(json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}}}}}));
        world.settle(15).await;
        if comes {
            world.protect("a");
        } else {
            let node = world.names(&Resource::NODES)[0].clone();
            let claims = world.list(&Resource::NODE_CLAIMS);
            let replacement = claims
                .iter()
                .find(|it| it["status"]["nodeName"] != node.as_str());
            let name = replacement.unwrap()["metadata"]["name"].as_str().unwrap();
            world.delete(&Resource::NODE_CLAIMS, name);
        }
        world.settle(60).await;
        let name = "karpenter_voluntary_disruption_queue_failures_total";
        let labels = "{decision=\"replace\",reason=\"drifted\",consolidation_type=\"\"}";
        let failures = world.series(&format!("{name}{labels}"));
        assert_eq!(failures, Some(if comes { 0.0 } else { 1.0 }), "{comes}");
        if comes {
            assert_eq!(world.times_recorded("command-waiting"), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_score_of_a_balanced_move_is_told_and_counted() {
    let disruption = json!({"consolidationPolicy": "Balanced", "budgets": [{"nodes": "100%"}]});
    let mut world = with_disruption(disruption).await;
    for (name, cpu) in [("a", "5"), ("b", "5"), ("c", "1")] {
        world.create_pod(name, cpu, &json!({}));
    }
    world.settle(45).await;
    assert_eq!(world.names(&Resource::NODES).len(), 2);
    let home = |world: &World, name: &str| {
        let pod = world.api.get(&Resource::PODS, "default", name).unwrap();
        pod["spec"]["nodeName"].as_str().unwrap().to_owned()
    };
    let small = home(&world, "c");
    let neighbour = if home(&world, "a") == small { "a" } else { "b" };
    world.delete_pod(neighbour);
    world.settle(90).await;
    assert!(!world.names(&Resource::NODES).contains(&small));
    for kind in ["Node", "NodeClaim"] {
        let told = world.event_messages(kind, "ConsolidationApproved");
        let score = "score 1.00 >= threshold 0.50 (k=2, savings 50.0%, disruption 50.0%)";
        assert_eq!(told, [score], "{kind}");
    }
    let labels = "{decision=\"approved\",nodepool=\"default\",policy=\"Balanced\"}";
    for name in [
        "karpenter_consolidation_moves_total",
        "karpenter_consolidation_score_count",
    ] {
        let counted = world.series(&format!("{name}{labels}"));
        assert!(counted.is_some_and(|it| it >= 1.0), "{name} {counted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn moves_of_other_pools_are_counted_without_a_score() {
    let disruption = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized"});
    let mut world = with_disruption(disruption).await;
    world.create_pod("a", "5", &json!({}));
    world.create_pod("b", "1", &json!({}));
    world.settle(60).await;
    world.delete_pod("a");
    world.settle(120).await;
    let labels = "{decision=\"approved\",nodepool=\"default\",policy=\"WhenEmptyOrUnderutilized\"}";
    let moves = world.series(&format!("karpenter_consolidation_moves_total{labels}"));
    assert!(moves.is_some_and(|it| it >= 1.0), "{moves:?}");
    assert_eq!(
        world.series(&format!("karpenter_consolidation_score_count{labels}")),
        None
    );
    assert!(
        world
            .event_messages("Node", "ConsolidationApproved")
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn what_do_not_disrupt_comes_to_is_told_on_the_pod() {
    let mut world = with_disruption(json!({})).await;
    for (name, value) in [("timed", "5m"), ("misread", "soon"), ("always", "true")] {
        let annotated =
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": value}}});
        world.create_pod(name, "900m", &annotated);
    }
    world.settle(120).await;
    let timed = world.api.get(&Resource::PODS, "default", "timed").unwrap();
    let started: jiff::Timestamp = timed["status"]["startTime"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let end = started + jiff::SignedDuration::from_mins(5);
    let until = format!(
        "The karpenter.sh/do-not-disrupt grace period will elapse at {}",
        end.strftime("%FT%TZ")
    );
    assert_eq!(world.event_messages("Pod", "DoNotDisruptUntil"), [until]);
    assert!(
        world
            .event_messages("Pod", "DoNotDisruptGracePeriodElapsed")
            .is_empty()
    );
    let misread = world.event_messages("Pod", "InvalidDoNotDisruptAnnotation");
    assert_eq!(misread.len(), 1);
    assert!(misread[0].contains("\"soon\""), "{misread:?}");
    world.settle(300).await;
    let over = world.event_messages("Pod", "DoNotDisruptGracePeriodElapsed");
    assert_eq!(over.len(), 1, "{over:?}");
    assert_eq!(world.event_messages("Pod", "DoNotDisruptUntil").len(), 1);
}
