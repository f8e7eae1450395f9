//! Which sick nodes are replaced by the legacy node repair, case by case.

use std::sync::Arc;

use apis::{NodeClaim, RepairAction, RepairPolicy, labels};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use state::{Cluster, Event};

use super::*;
use crate::node_claim::tests::claim_with;

/// Half an hour of not being ready is tolerated, ten minutes of a sick disk, which bounds the drain.
fn policies() -> RepairPolicies {
    let policy = |condition_type: &str, reason: &str, minutes: i64| RepairPolicy {
        condition_type: condition_type.to_owned(),
        condition_status: "False".to_owned(),
        reason_regex: reason.to_owned(),
        toleration: GoDuration::from_seconds(minutes * 60),
        termination_grace_period: (!reason.is_empty()).then(|| GoDuration::from_seconds(60)),
        priority: 0,
        action: RepairAction::Replace,
    };
    let policies = vec![policy("Ready", "", 30), policy("DiskReady", ".*", 10)];
    RepairPolicies::new(policies).unwrap()
}

/// A node of a pool, or of none, with conditions that have been False since these minutes past midnight.
#[derive(Debug, Clone, Copy)]
struct NodeCase {
    pool: Option<&'static str>,
    is_going: bool,
    sick: &'static [(&'static str, u8)],
}

const WELL: NodeCase = NodeCase {
    pool: Some("web"),
    is_going: false,
    sick: &[],
};
const SICK: NodeCase = NodeCase {
    sick: &[("Ready", 10)],
    ..WELL
};

/// The claim and the node of this number.
fn objects(number: usize, seen: NodeCase) -> (NodeClaim, Node) {
    let NodeCase {
        pool,
        is_going,
        sick,
    } = seen;
    // A Node that says no type yet is too young to be known as its claim's.
    let of_pool = |it| json!({labels::NODEPOOL: it, labels::INSTANCE_TYPE: "m5.large"});
    let labels = pool.map_or_else(|| json!({}), of_pool);
    let id = format!("aws:///a/i-{number}");
    let claim = claim_with(&json!({
        "/metadata/name": format!("c{number}"), "/metadata/uid": format!("c{number}"), "/metadata/labels": labels,
        "/metadata/deletionTimestamp": is_going.then_some("2026-01-01T00:50:00Z"), "/status/providerID": id,
    }));
    let conditions = sick.iter().map(|(condition, minute)| {
        let since = format!("2026-01-01T00:{minute:02}:00Z");
        json!({"type": condition, "status": "False", "reason": "Test", "lastTransitionTime": since})
    });
    let node = json!({
        "metadata": {"name": format!("n{number}"), "uid": format!("n{number}"), "labels": labels},
        "spec": {"providerID": id}, "status": {"conditions": conditions.collect::<Vec<Value>>()},
    });
    (claim, serde_json::from_value(node).unwrap())
}

/// What is decided at one o'clock: the node, the condition, the bound of its drain, and what holds it back.
fn decided(nodes: &[NodeCase]) -> Vec<String> {
    let now = "2026-01-01T01:00:00Z".parse().unwrap();
    let mut cluster = Cluster::new();
    for (number, seen) in nodes.iter().enumerate() {
        let (claim, node) = objects(number, *seen);
        cluster.apply(now, Event::applied(Arc::new(claim))).unwrap();
        cluster.apply(now, Event::applied(Arc::new(node))).unwrap();
    }
    let sick = decide(&cluster.snapshot(), &policies(), now);
    let told = sick.iter().map(|it| {
        let bound = it.bound.map_or("", |_| " bounded");
        let blocked = it.blocked.map_or_else(String::new, |it| format!(": {it}"));
        format!("{} {}{bound}{blocked}", it.node, it.condition)
    });
    told.collect()
}

#[test]
fn what_is_sick_for_too_long_goes_unless_too_much_of_its_pool_is() {
    let of_pool = "more than 20% of its nodepool is unhealthy";
    let of_cluster = "more than 20% of the cluster is unhealthy";
    let sick_since = |minutes: &'static [(&'static str, u8)]| NodeCase {
        sick: minutes,
        ..WELL
    };
    let db = NodeCase {
        pool: Some("db"),
        ..SICK
    };
    let standalone = NodeCase { pool: None, ..SICK };
    let going = NodeCase {
        is_going: true,
        ..SICK
    };
    let cases: [(&[NodeCase], &[String]); 10] = [
        (&[WELL], &[]),
        (&[sick_since(&[("Ready", 30)])], &["n0 Ready".to_owned()]),
        (&[sick_since(&[("Ready", 31)])], &[]),
        (&[sick_since(&[("PIDPressure", 1)])], &[]),
        // Of two conditions the one counts whose time was up first, and its policy bounds the drain.
        (
            &[sick_since(&[("Ready", 20), ("DiskReady", 30)])],
            &["n0 DiskReady bounded".to_owned()],
        ),
        (
            &[SICK, SICK],
            &[
                format!("n0 Ready: {of_pool}"),
                format!("n1 Ready: {of_pool}"),
            ],
        ),
        // Each pool is looked at by itself.
        (&[SICK, db], &["n0 Ready".to_owned(), "n1 Ready".to_owned()]),
        (
            &[SICK, SICK, WELL, WELL, WELL, WELL],
            &["n0 Ready".to_owned(), "n1 Ready".to_owned()],
        ),
        (
            &[standalone, standalone],
            &[
                format!("n0 Ready: {of_cluster}"),
                format!("n1 Ready: {of_cluster}"),
            ],
        ),
        // What goes already is as sick as the others, and need not be told to go.
        (&[going, SICK], &[format!("n1 Ready: {of_pool}")]),
    ];
    for (nodes, expected) in cases {
        assert_eq!(decided(nodes), expected, "{nodes:?}");
    }
}

#[test]
fn what_was_held_back_is_let_alone_until_it_begins_anew() {
    let at =
        |minute: u8| -> Timestamp { format!("2026-01-01T00:{minute:02}:00Z").parse().unwrap() };
    let sick = |since: u8| Sick {
        node: "n".to_owned(),
        claim: "c".to_owned(),
        condition: "Ready".to_owned(),
        bound: None,
        since: at(since),
        blocked: None,
    };
    let mut held_back = HeldBack::default();
    held_back.add(&sick(1), at(10));
    for (minute, since, expected) in [(10, 1, true), (10, 2, false), (14, 1, true), (15, 1, false)]
    {
        held_back.forget_past(at(minute));
        assert_eq!(held_back.has(&sick(since)), expected, "{minute} {since}");
    }
}
