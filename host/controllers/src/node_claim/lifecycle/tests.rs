//! What a claim needs next, case by case.

use serde_json::{Value, json};

use super::*;
use crate::node_claim::tests::{claim_with, condition, name_of};

/// A claim that stays, at one in the morning, of which some conditions are told.
fn step(conditions: &[Value], nodes: usize) -> String {
    let claim = json!({"/metadata/deletionTimestamp": null, "/status/conditions": conditions});
    let node = json!({
        "metadata": {"name": "n"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let node = serde_json::from_value(node).unwrap();
    let node = Arc::new(NodeFacts::parse(&node));
    let observed = Observed {
        claim: Arc::new(claim_with(&claim)),
        nodes: vec![node; nodes],
    };
    name_of(&decide(&observed, "2026-01-01T01:00:00Z".parse().unwrap()))
}

#[test]
fn a_claim_is_launched_registered_and_initialized_in_time() {
    let launched = condition("Launched", "True", "00:10");
    let registered = condition("Registered", "True", "00:20");
    let initialized = condition("Initialized", "True", "00:30");
    let launching = |at| vec![condition("Launched", "Unknown", at)];
    let waiting = |at| vec![launched.clone(), condition("Registered", "Unknown", at)];
    let there = vec![launched.clone(), registered.clone()];
    let just_there = vec![launched.clone(), condition("Registered", "True", "01:00")];
    let mut not_found = condition("Initialized", "Unknown", "00:20");
    not_found["reason"] = reason::NODE_NOT_FOUND.into();
    let reported = [just_there.clone(), vec![not_found]].concat();
    let rebooting = [there.clone(), vec![condition("Rebooting", "True", "00:50")]].concat();
    let at_rest = [there.clone(), vec![initialized]].concat();
    let cases = [
        (launching("00:58"), 0, "Launch"),
        (launching("00:55"), 0, "GiveUp"),
        (waiting("00:50"), 0, "AwaitNode"),
        (waiting("00:45"), 0, "GiveUp"),
        (waiting("00:50"), 1, "Register"),
        (waiting("00:45"), 1, "Register"),
        (waiting("00:50"), 2, "MultipleNodes"),
        (there.clone(), 0, "AwaitInitialization"),
        (there, 1, "Initialize"),
        (just_there.clone(), 0, "AwaitReadiness"),
        (reported, 0, "AwaitInitialization"),
        (just_there, 1, "Initialize"),
        (rebooting, 1, "Rest"),
        (at_rest, 1, "Rest"),
    ];
    for (conditions, nodes, expected) in cases {
        assert_eq!(step(&conditions, nodes), expected, "{conditions:?} {nodes}");
    }
}

#[test]
fn what_holds_a_claim_goes_first() {
    let cases = [
        (json!({}), "Finalize"),
        (
            json!({"/metadata/deletionTimestamp": null, "/metadata/finalizers": []}),
            "AddFinalizer",
        ),
    ];
    for (extra, expected) in cases {
        let observed = Observed {
            claim: Arc::new(claim_with(&extra)),
            nodes: Vec::new(),
        };
        let step = decide(&observed, Timestamp::UNIX_EPOCH);
        assert_eq!(name_of(&step), expected, "{extra}");
    }
}
