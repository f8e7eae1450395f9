//! What is counted, from objects as an API server tells them.

use serde_json::json;

use super::*;
use crate::gathered::ObjectChange;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn change(kind: ReadKind, object: Value) -> ObjectChange {
    ObjectChange {
        kind,
        object,
        is_gone: false,
    }
}

fn gone(kind: ReadKind, object: Value) -> ObjectChange {
    ObjectChange {
        kind,
        object,
        is_gone: true,
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "a change is made where it is told"
)]
fn told(tally: &mut FleetTally, change: ObjectChange, now: Timestamp) -> Option<Happening> {
    tally.apply(change.told(), now)
}

fn claim_object(name: &str, is_launched: bool) -> Value {
    let id = if is_launched {
        "aws:///us-east-1a/i-1"
    } else {
        ""
    };
    json!({
        "metadata": {"name": name, "labels": {
            "karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "m5.large",
            "topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot",
        }},
        "status": {"providerID": id, "nodeName": format!("node-{name}"), "capacity": {"cpu": "2"}},
    })
}

fn node_object(name: &str, taint: Option<&str>) -> Value {
    let taints: Vec<Value> = taint.map(|key| json!({"key": key})).into_iter().collect();
    json!({"metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "web"}}, "spec": {"taints": taints}})
}

fn pod_object(name: &str, node: &str, owner: &str, is_deleting: bool) -> Value {
    let deletion = if is_deleting {
        json!("2026-01-01T00:00:00Z")
    } else {
        Value::Null
    };
    json!({
        "metadata": {"name": name, "namespace": "a", "deletionTimestamp": deletion,
            "ownerReferences": [{"kind": owner, "controller": true}]},
        "spec": {"nodeName": node}, "status": {"phase": "Running"},
    })
}

/// A tally of a claim with its node and a pod there.
fn begun() -> FleetTally {
    let mut tally = FleetTally::new(at(0));
    told(
        &mut tally,
        change(ReadKind::NodeClaims, claim_object("x", true)),
        at(0),
    );
    told(
        &mut tally,
        change(ReadKind::Nodes, node_object("node-x", None)),
        at(0),
    );
    told(
        &mut tally,
        change(
            ReadKind::Pods,
            pod_object("p", "node-x", "ReplicaSet", false),
        ),
        at(0),
    );
    tally.begin(at(0));
    tally
}

#[test]
fn what_was_there_at_the_start_is_no_launch_and_costs_from_the_start() {
    let mut tally = begun();
    tally.advance(at(100));
    assert_eq!(tally.pools, BTreeMap::new());
    assert_eq!(
        tally.node_seconds.values().copied().collect::<Vec<_>>(),
        [100.0]
    );
    assert_eq!(
        tally.stock().map(|(_, cpus)| cpus).collect::<Vec<_>>(),
        [2.0]
    );
}

#[test]
fn a_claim_counts_from_its_launch_to_its_end() {
    let mut tally = begun();
    let claim = |tally: &mut FleetTally, is_launched, second| {
        told(
            tally,
            change(ReadKind::NodeClaims, claim_object("y", is_launched)),
            at(second),
        )
    };
    assert_eq!(claim(&mut tally, false, 10), None);
    assert!(matches!(
        claim(&mut tally, true, 20),
        Some(Happening::Launched { .. })
    ));
    assert_eq!(claim(&mut tally, true, 30), None);
    let ended = told(
        &mut tally,
        gone(ReadKind::NodeClaims, claim_object("y", true)),
        at(50),
    );
    assert!(matches!(ended, Some(Happening::Ended { .. })));
    let counts = tally.pools["web"];
    assert_eq!((counts.launches, counts.terminations), (1, 1));
    assert_eq!(
        tally.node_seconds.values().copied().collect::<Vec<_>>(),
        [80.0],
        "x for 50 s, y for 30 s"
    );
}

#[test]
fn evictions_are_pods_that_leave_a_node_that_is_drained() {
    let taint = Some("karpenter.sh/disrupted");
    // The owner, the taint, whether the taint is told first, and what is counted.
    let cases = [
        ("ReplicaSet", taint, true, 1),
        ("ReplicaSet", taint, false, 1),
        ("ReplicaSet", None, true, 0),
        ("DaemonSet", taint, true, 0),
        ("Node", taint, true, 0),
    ];
    for (owner, taint, is_first, expected) in cases {
        let mut tally = begun();
        told(
            &mut tally,
            change(ReadKind::Pods, pod_object("p", "node-x", owner, false)),
            at(1),
        );
        let drained = change(ReadKind::Nodes, node_object("node-x", taint));
        if is_first {
            told(&mut tally, drained.clone(), at(2));
        }
        told(
            &mut tally,
            change(ReadKind::Pods, pod_object("p", "node-x", owner, true)),
            at(3),
        );
        if !is_first {
            told(&mut tally, drained.clone(), at(4));
        }
        told(
            &mut tally,
            gone(ReadKind::Pods, pod_object("p", "node-x", owner, true)),
            at(5),
        );
        let evictions = tally.pools.get("web").map_or(0, |it| it.evictions);
        assert_eq!(evictions, expected, "{owner} {taint:?} {is_first}");
    }
}

#[test]
fn a_claim_that_is_deleted_drains_its_node_without_a_taint() {
    let mut tally = begun();
    let mut claim = claim_object("x", true);
    claim["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    told(&mut tally, change(ReadKind::NodeClaims, claim), at(1));
    told(
        &mut tally,
        gone(
            ReadKind::Pods,
            pod_object("p", "node-x", "ReplicaSet", false),
        ),
        at(2),
    );
    assert_eq!(tally.pools["web"].evictions, 1);
}

#[test]
fn pods_that_wait_are_counted_by_the_second() {
    let mut tally = begun();
    let mut pod = pod_object("q", "", "ReplicaSet", false);
    pod["status"]["phase"] = json!("Pending");
    told(&mut tally, change(ReadKind::Pods, pod.clone()), at(10));
    assert_eq!(tally.pending_pods(), 1);
    pod["spec"]["nodeName"] = json!("node-x");
    told(&mut tally, change(ReadKind::Pods, pod), at(25));
    tally.advance(at(100));
    assert_eq!((tally.pending_pods(), tally.pending_pod_seconds), (0, 15.0));
    let mut gated = pod_object("g", "", "Job", false);
    gated["spec"]["schedulingGates"] = json!([{"name": "quota"}]);
    told(&mut tally, change(ReadKind::Pods, gated), at(101));
    assert_eq!(tally.pending_pods(), 0, "it does not wait for a node");
}
