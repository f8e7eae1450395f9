//! What a node on its way out needs next, case by case.

use serde_json::{Value, json};

use super::*;
use crate::node_claim::tests::{claim_with, condition, name_of};

/// A node of ours that is being deleted.
fn node() -> Node {
    let node = json!({"metadata": {
        "name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": [labels::TERMINATION_FINALIZER],
        "labels": {(labels::EC2_NODE_CLASS): "default"},
    }, "spec": {"providerID": "aws:///a/i-1"}});
    serde_json::from_value(node).unwrap()
}

/// At an hour past the deletion of the node: tainted, nobody on it, and a claim of which some things are said.
fn going(extra: &Value, attachments: &[&str]) -> Observed {
    Observed {
        node: Arc::new(NodeFacts::parse(&tainted(&node()))),
        claim: Some(Arc::new(claim_with(extra))),
        pods: Vec::new(),
        attachments: attachments.iter().map(|it| (*it).to_owned()).collect(),
        is_instance_gone: false,
    }
}

fn step(observed: &Observed) -> String {
    name_of(&decide(observed, "2026-01-01T01:00:00Z".parse().unwrap()))
}

#[test]
fn pods_then_volumes_then_instance() {
    let drained = condition("Drained", "True", "00:10");
    let mut waits = condition("VolumesDetached", "Unknown", "00:10");
    waits["reason"] = reason::AWAITING_VOLUME_DETACHMENT.into();
    let detached = condition("VolumesDetached", "True", "00:20");
    let over = json!({"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-01T00:59:00Z"});
    let said = |conditions: &[&Value]| json!({"/status/conditions": conditions});
    let cases = [
        (
            json!({"/metadata/deletionTimestamp": null}),
            vec![],
            "DeleteClaim",
        ),
        (json!({}), vec![], "Drain"),
        (
            said(&[&condition("Drained", "Unknown", "00:10")]),
            vec![],
            "DrainedAndDetached",
        ),
        (
            said(&[&condition("Drained", "Unknown", "00:10")]),
            vec!["volume"],
            "Drained",
        ),
        (said(&[&drained, &waits]), vec!["volume"], "AwaitVolumes"),
        (said(&[&drained, &waits]), vec![], "VolumesDetached"),
        (said(&[&drained]), vec![], "VolumesAbsent"),
        (
            json!({"/status/conditions": [&drained, &waits], "/metadata/annotations": over}),
            vec!["volume"],
            "VolumesLate",
        ),
        (said(&[&drained, &detached]), vec![], "TerminateInstance"),
    ];
    for (extra, attachments, expected) in cases {
        let found = step(&going(&extra, &attachments));
        assert_eq!(found, expected, "{extra} {attachments:?}");
    }
}

#[test]
fn what_the_node_itself_says_goes_first() {
    let gone = Observed {
        is_instance_gone: true,
        ..going(&json!({}), &[])
    };
    assert_eq!(step(&gone), "Release");
    let open = Observed {
        node: Arc::new(NodeFacts::parse(&node())),
        ..going(&json!({}), &[])
    };
    assert_eq!(step(&open), "Taint");
    let without_claim = Observed {
        claim: None,
        ..going(&json!({}), &[])
    };
    assert_eq!(step(&without_claim), "TerminateInstance");
}
