//! How a command goes on, succeeds or is given up.

use std::sync::Arc;

use apis::{NodeClaim, NodeRef};
use k8s_openapi::api::core::v1;
use serde_json::json;
use state::{Cluster, Event};

use super::*;
use crate::method::Method;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

/// Claims told as `name` and words: `launched`, `initialized`, `down` (it was initialized), `deleting`.
fn cluster(claims: &[(&str, &str)]) -> Cluster {
    let mut cluster = Cluster::new();
    for (name, words) in claims {
        let has = |word: &str| words.split_whitespace().any(|it| it == word);
        let mut object = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name},
            "spec": {"requirements": [], "nodeClassRef": {"group": "g", "kind": "K", "name": "c"}},
            "status": {"conditions": []}});
        if has("launched") || has("initialized") || has("down") {
            object["status"]["providerID"] = json!(format!("aws:///a/{name}"));
        }
        if has("initialized") || has("down") {
            object["status"]["conditions"] = json!([{"type": "Initialized", "status": "True", "reason": "", "message": "",
                "lastTransitionTime": "2026-11-20T10:00:00Z"}]);
        }
        if has("deleting") {
            object["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
        }
        let claim = Arc::new(serde_json::from_value(object).unwrap());
        cluster
            .apply(at(0), Event::applied::<NodeClaim>(claim))
            .unwrap();
        if has("initialized") || has("down") {
            let ready = if has("down") { "False" } else { "True" };
            let node = json!({"metadata": {"name": format!("node-{name}")},
                "spec": {"providerID": format!("aws:///a/{name}")},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}});
            let node = Arc::new(serde_json::from_value(node).unwrap());
            cluster
                .apply(at(0), Event::applied::<v1::Node>(node))
                .unwrap();
        }
    }
    cluster
}

fn running(replacements: &[&str]) -> RunningCommand {
    RunningCommand {
        command: Command {
            id: "c".into(),
            method: Method::SingleNodeConsolidation,
            execution: crate::Execution::DELETE,
            repair_reason: None,
            candidates: Vec::new(),
            destinations: Vec::new(),
            before: crate::command::Cost::at_list_price(1.0),
            after: crate::command::Cost::at_list_price(0.5),
            policy_reason: None,
            score: 0.0,
        },
        replacements: replacements.iter().map(ToString::to_string).collect(),
        started_at: at(0),
        is_wait_told: false,
    }
}

#[test]
fn a_command_waits_for_its_replacements_and_not_for_ever() {
    for (claims, wanted, now, expected) in [
        (&[][..], &[][..], 0, "delete"),
        (&[("a", "initialized")], &["a"], 1, "delete"),
        (&[("a", "")], &["a"], 1, "wait a"),
        (
            &[("a", "launched"), ("b", "initialized")],
            &["a", "b"],
            600,
            "wait a",
        ),
        (
            &[("a", "down"), ("b", "initialized")],
            &["a", "b"],
            1,
            "wait a",
        ),
        (&[("a", "down")], &["a"], 601, "give up"),
        (&[("a", "launched")], &["a"], 601, "give up"),
        (&[("b", "initialized")], &["a"], 1, "give up"),
        (&[("a", "initialized deleting")], &["a"], 1, "give up"),
    ] {
        let snapshot = cluster(claims).snapshot();
        let told = match progress(&running(wanted), &snapshot, 1, at(now)) {
            CommandProgress::Wait { on } => format!("wait {}", on.join(" ")),
            CommandProgress::Delete => "delete".to_owned(),
            CommandProgress::GiveUp { .. } => "give up".to_owned(),
        };
        assert_eq!(told, expected, "{claims:?} {wanted:?} at {now}");
    }
}

#[test]
fn many_nodes_on_the_move_have_more_time() {
    for (queued, minutes) in [(1, 10), (7_500, 10), (15_000, 20), (1_000_000, 60)] {
        assert_eq!(timeout(queued).as_secs(), minutes * 60, "{queued}");
    }
}

#[test]
fn marks_without_a_command_are_stale() {
    let labels =
        json!({"karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "m5.large"});
    for (taint, queued, marked, expected) in [
        ("karpenter.sh/disrupted", false, false, true),
        ("karpenter.sh/disrupted", true, false, false),
        ("karpenter.sh/disrupted", false, true, false),
        ("team", false, false, false),
    ] {
        let mut cluster = cluster(&[("a", "initialized")]);
        let node = json!({"metadata": {"name": "node-a", "labels": labels},
            "spec": {"providerID": "aws:///a/a", "taints": [{"key": taint, "effect": "NoSchedule"}]}});
        cluster
            .apply(
                at(0),
                Event::applied::<v1::Node>(Arc::new(serde_json::from_value(node).unwrap())),
            )
            .unwrap();
        if marked {
            cluster
                .apply(
                    at(0),
                    Event::MarkedForDeletion(vec![NodeRef::node("node-a")]),
                )
                .unwrap();
        }
        let queue = if queued {
            BTreeSet::from(["a".to_owned()])
        } else {
            BTreeSet::new()
        };
        assert_eq!(
            stale_marks(&cluster.snapshot(), &queue).len() == 1,
            expected,
            "{taint} {queued} {marked}"
        );
    }
}

#[test]
fn a_replacement_that_no_pod_came_to_or_is_planned_for_is_unused() {
    let pod = |node: &str, owner: &str| {
        let owners = json!([{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": true}]);
        let pod = json!({
            "metadata": {"namespace": "default", "name": "p", "uid": "p", "ownerReferences": owners},
            "spec": {"nodeName": node, "containers": []}, "status": {"phase": "Running"},
        });
        Event::applied::<v1::Pod>(Arc::new(serde_json::from_value(pod).unwrap()))
    };
    let nominated = || Event::Nominated {
        node: NodeRef::claim("r"),
        until: at(60),
    };
    let cases = [
        ("r initialized", vec![], true),
        ("r launched", vec![], true),
        ("other initialized", vec![], false),
        ("r initialized", vec![pod("node-r", "ReplicaSet")], false),
        ("r initialized", vec![pod("node-r", "DaemonSet")], true),
        ("r initialized", vec![pod("elsewhere", "ReplicaSet")], true),
        ("r initialized", vec![nominated()], false),
    ];
    for (number, (claim, events, expected)) in cases.into_iter().enumerate() {
        let mut cluster = cluster(&[claim.split_once(' ').unwrap()]);
        for event in events {
            cluster.apply(at(0), event).unwrap();
        }
        let is_unused = is_unused(&cluster.snapshot(), "r", at(1));
        assert_eq!(is_unused, expected, "case {number}");
    }
}
