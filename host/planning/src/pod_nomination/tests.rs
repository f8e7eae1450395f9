//! Which pods are told of a node, and in which order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{NodeClaim, NodeRef};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::Options;
use serde_json::{Value, json};
use state::{Cluster, Event, Snapshot};

use super::{
    PlaceTrade, Renomination, awaits_others, following, is_crowded, nominations, nominations_again,
    shut_out,
};
use crate::places::{SchedulerPace, place_in_the_making, place_just_opened, scheduler_pace};
use crate::provisioning::problem_for_provisioning;

mod openings;
mod trades;

const OPENED: i64 = 100;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A condition that came about at [`OPENED`].
fn condition(condition_type: &str) -> Value {
    json!({
        "type": condition_type, "status": "True", "reason": "", "message": "",
        "lastTransitionTime": at(OPENED).to_string(),
    })
}

/// A claim with a node of four CPUs that opened at [`OPENED`].
fn opened() -> [Event; 2] {
    opened_as("1", true)
}

fn opened_as(number: &str, is_ready: bool) -> [Event; 2] {
    let provider_id = format!("aws:///zone/i-{number}");
    let (claim, node) = (format!("c{number}"), format!("n{number}"));
    let ready = if is_ready { "True" } else { "False" };
    let amounts = json!({"cpu": "4", "pods": "10"});
    let claim = json!({
        "metadata": {"name": claim, "uid": claim, "creationTimestamp": at(0).to_string(), "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
        "status": {"providerID": provider_id, "allocatable": amounts, "conditions": [condition("Launched"), condition("Registered")]},
    });
    let labels = json!({
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", "topology.kubernetes.io/zone": "a",
    });
    let node = json!({
        "metadata": {"name": node, "uid": node, "labels": labels},
        "spec": {"providerID": provider_id},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]},
    });
    [
        Event::applied::<NodeClaim>(Arc::new(typed(claim))),
        Event::applied::<v1::Node>(Arc::new(typed::<v1::Node>(node))),
    ]
}

/// A node of nobody's in another zone.
fn elsewhere(zone: &str) -> Event {
    let node = json!({
        "metadata": {"name": zone, "uid": zone, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    Event::applied::<v1::Node>(Arc::new(typed::<v1::Node>(node)))
}

/// A pod of a kind: pods of one kind are equal, and spread over zones where `spread` says so.
fn pod(name: &str, cpu: &str, spread: bool) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let mut spec = json!({"containers": [container]});
    if spread {
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": cpu}},
        }]);
    }
    json!({
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"app": cpu}},
        "spec": spec,
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
    })
}

/// The pod, nominated to the node by us.
fn told(mut pod: Value) -> Value {
    pod["status"]["nominatedNodeName"] = "n1".into();
    pod["metadata"]["managedFields"] = json!([{"manager": "mortise-plan"}]);
    pod
}

fn bound(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = "n1".into();
    pod["status"] = json!({"phase": "Running"});
    pod
}

/// The pods, all placed on the node, queued in their order.
fn snapshot(pods: &[Value]) -> Snapshot {
    let mut cluster = Cluster::new();
    let keys = pods.iter();
    let keys = keys.map(|pod| PodKey::new("default", pod["metadata"]["name"].as_str().unwrap()));
    let placed = Event::Placed {
        node: NodeRef::claim("c1"),
        pods: keys.collect(),
    };
    let versions = 1..;
    let applied = pods.iter().zip(versions).map(|(pod, version)| {
        let mut pod = pod.clone();
        pod["metadata"]["resourceVersion"] = version.to_string().into();
        Event::applied::<v1::Pod>(Arc::new(typed(pod)))
    });
    let others = ["b", "c"].map(elsewhere);
    let events = opened().into_iter().chain(others);
    let events = events.chain(applied).chain([placed]);
    for event in events.collect::<Vec<_>>() {
        cluster.apply(at(OPENED), event).unwrap();
    }
    cluster.snapshot()
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    let node = snapshot.node_of_claim("c1").unwrap();
    let out_of_turn = following(snapshot, PlaceTrade::Nobody, at(OPENED)).out_of_turn;
    let pods = nominations(snapshot, node, &out_of_turn).into_iter();
    pods.map(|pod| pod.key.name.as_str()).collect()
}

#[test]
fn pods_are_told_in_the_order_in_which_the_scheduler_tries_them() {
    let pods = [pod("z", "1", false), pod("a", "2", false)];
    assert_eq!(names(&snapshot(&pods)), ["z", "a"]);
}

#[test]
fn who_was_told_or_is_of_another_kind_than_no_other_is_not_told() {
    let pods = [told(pod("a", "1", false)), pod("b", "2", false)];
    assert_eq!(names(&snapshot(&pods)), ["b"]);
    let alike = [pod("a", "1", false), pod("b", "1", false)];
    assert!(names(&snapshot(&alike)).is_empty());
}

#[test]
fn of_equal_pods_that_must_spread_one_is_told_at_a_time() {
    let other = || pod("other", "100m", false);
    let sibling = |name| pod(name, "1", true);
    let pods = [other(), sibling("a"), sibling("b")];
    assert_eq!(names(&snapshot(&pods)), ["other", "a"]);
    let pods = [other(), told(sibling("a")), sibling("b")];
    assert_eq!(names(&snapshot(&pods)), ["other"]);
    let pods = [other(), bound(sibling("a")), sibling("b")];
    let found = snapshot(&pods);
    assert_eq!(
        names(&found),
        ["other", "b"],
        "it holds its room until it is tried"
    );
    let kept_off = following(&found, PlaceTrade::Nobody, at(OPENED)).kept_off;
    assert_eq!(kept_off.len(), 1, "no other zone has one");
    let elsewhere = |zone: &str| {
        let mut pod = bound(pod(&format!("in-{zone}"), "1", true));
        pod["spec"]["nodeName"] = zone.into();
        pod
    };
    let pods = [
        elsewhere("b"),
        elsewhere("c"),
        other(),
        bound(sibling("a")),
        sibling("b"),
    ];
    assert_eq!(names(&snapshot(&pods)), ["other", "b"]);
}

#[test]
fn who_has_no_room_there_any_more_is_not_told() {
    // Another pod took three of the four CPUs.
    let taken = bound(pod("taken", "3", false));
    let pods = [taken, pod("large", "2", false), pod("small", "1", false)];
    assert_eq!(names(&snapshot(&pods)), ["small"]);
    let pods = [
        told(pod("told", "3", false)),
        pod("large", "2", false),
        pod("small", "1", false),
    ];
    assert_eq!(names(&snapshot(&pods)), ["small"]);
}

#[test]
fn pods_are_awaited_for_three_minutes_after_their_node_opened() {
    let waiting = snapshot(&[pod("a", "1", false), pod("b", "2", false)]);
    for (seconds, expected) in [(0, true), (179, true), (180, false)] {
        let told = match nominations_again(&waiting, &BTreeSet::new(), at(OPENED + seconds)) {
            Renomination::NothingAwaited => None,
            Renomination::Awaited(it) => {
                let told = it.iter().map(|it| (it.node, it.pods.len()));
                Some(told.collect::<Vec<_>>())
            }
        };
        assert_eq!(told, expected.then(|| vec![("n1", 2)]), "{seconds}");
    }
    let arrived = snapshot(&[bound(pod("a", "1", false))]);
    let again = nominations_again(&arrived, &BTreeSet::new(), at(OPENED));
    assert!(matches!(again, Renomination::NothingAwaited));
    let alike = snapshot(&[pod("a", "1", false), pod("b", "1", false)]);
    let again = nominations_again(&alike, &BTreeSet::new(), at(OPENED));
    assert!(
        matches!(again, Renomination::Awaited(it) if it.is_empty()),
        "any may take any place"
    );
}

#[test]
fn a_node_awaits_all_that_were_planned_with_it() {
    for coming in 0..3 {
        let mut cluster = Cluster::new();
        let nodes = (0..10).flat_map(|number| opened_as(&number.to_string(), number >= coming));
        let pods = [pod("a", "1", false), pod("b", "2", false)].into_iter();
        let pods = pods.map(|pod| Event::applied::<v1::Pod>(Arc::new(typed(pod))));
        for event in nodes.chain(pods).collect::<Vec<_>>() {
            cluster.apply(at(OPENED), event).unwrap();
        }
        let snapshot = cluster.snapshot();
        assert!(!is_crowded(&snapshot));
        assert_eq!(
            awaits_others(&snapshot, "c9"),
            coming > 0,
            "{coming} are coming"
        );
    }
}

#[test]
fn a_place_is_kept_while_pods_still_come_to_its_node() {
    let [claim, node] = ["c1", "n1"];
    // When a pod came last after the node had opened, and from when on its pods are placed anew.
    for (last_pod, given_up) in [(None, 12), (Some(20), 32), (Some(55), 60)] {
        let last_pod = last_pod.map(|it: i64| at(OPENED + it).to_string());
        let claim = json!({
            "metadata": {"name": claim, "uid": claim},
            "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
            "status": {"providerID": "id", "nodeName": node, "conditions": [condition("Initialized")], "lastPodEventTime": last_pod},
        });
        let events = [
            Event::applied::<NodeClaim>(Arc::new(typed(claim))),
            Event::applied::<v1::Pod>(Arc::new(typed(pod("a", "1", false)))),
            Event::Placed {
                node: NodeRef::claim("c1"),
                pods: vec![PodKey::new("default", "a")],
            },
        ];
        let mut cluster = Cluster::new();
        for event in events {
            cluster.apply(at(OPENED), event).unwrap();
        }
        let snapshot = cluster.snapshot();
        for (seconds, expected) in [(given_up - 1, true), (given_up, false)] {
            let place = place_just_opened(
                &snapshot,
                &PodKey::new("default", "a"),
                SchedulerPace::Keeps,
                at(OPENED + seconds),
            );
            assert_eq!(place.is_some(), expected, "{seconds} s, {last_pod:?}");
        }
    }
}

#[test]
fn a_place_is_given_up_at_once_when_its_room_is_taken() {
    let planned_anew = |pods: &[Value]| {
        let snapshot = snapshot(pods);
        let options = Options {
            now: at(OPENED + 1),
            ..Options::default()
        };
        let input = problem_for_provisioning(&snapshot, &[], BTreeMap::new(), options);
        let names = input.problem.pods.iter().map(|it| it.key.name.clone());
        names.collect::<Vec<_>>()
    };
    let placed = || [pod("large", "2", false), pod("small", "1", false)];
    assert_eq!(planned_anew(&placed()), [""; 0]);
    // Another took three of the four CPUs.
    let taken = [vec![bound(pod("other", "3", false))], placed().to_vec()].concat();
    assert_eq!(planned_anew(&taken), ["large"]);
    // Whoever was told comes before those that wait longer.
    let [large, small] = placed();
    let told_last = [bound(pod("other", "2", false)), small, told(large)];
    assert_eq!(planned_anew(&told_last), ["small"]);
}

#[test]
fn a_place_is_kept_while_the_scheduler_is_behind_and_binds_others() {
    let condition = json!({"type": "Initialized", "status": "True", "reason": "", "message": "", "lastTransitionTime": at(OPENED).to_string()});
    let claim_of = |cpus: i64| {
        json!({
            "metadata": {"name": "c1", "uid": "c1"},
            "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
            "status": {"providerID": "id", "nodeName": "n1", "conditions": [condition],
                "allocatable": {"cpu": cpus.to_string(), "pods": "1000"}},
        })
    };
    // How many pods wait for the node, for how many it has room, when one that had been placed was bound last, and
    // until when its place is kept.
    for (waiting, room, last_bound, given_up) in [
        (99, 200, 30, 12),
        (100, 200, 30, 42),
        (100, 200, 55, 67),
        (100, 200, 178, 180),
        (100, 200, 0, 12),
        (100, 99, 30, 12),
    ] {
        let claim = claim_of(room);
        let names: Vec<String> = (0..=waiting).map(|it| format!("p{it}")).collect();
        let keys = names.iter().map(|it| PodKey::new("default", it));
        let placed = Event::Placed {
            node: NodeRef::claim("c1"),
            pods: keys.collect(),
        };
        let pods = names.iter().map(|it| pod(it, "1", false));
        let pods = pods.map(|it| Event::applied::<v1::Pod>(Arc::new(typed(it))));
        let claim = Event::applied::<NodeClaim>(Arc::new(typed(claim.clone())));
        let mut cluster = Cluster::new();
        for event in std::iter::once(claim).chain(pods).chain([placed]) {
            cluster.apply(at(OPENED), event).unwrap();
        }
        let mut bound = pod("p0", "1", false);
        bound["spec"]["nodeName"] = json!("elsewhere");
        let bound = Event::applied::<v1::Pod>(Arc::new(typed(bound)));
        cluster.apply(at(OPENED + last_bound), bound).unwrap();
        let snapshot = cluster.snapshot();
        for (seconds, expected) in [(given_up - 1, true), (given_up, false)] {
            let now = at(OPENED + seconds);
            let pods = snapshot.pods().filter(|it| it.is_provisionable()).cloned();
            let pods: Vec<Arc<Pod>> = pods.collect();
            let pace = scheduler_pace(&snapshot, &pods, now);
            let place = place_just_opened(&snapshot, &pods[0].key, pace, now);
            assert_eq!(
                place.is_some(),
                expected,
                "{waiting} {room} {last_bound} {seconds} s"
            );
        }
    }
}

#[test]
fn a_place_is_kept_between_the_label_that_opens_a_node_and_the_condition_that_says_so() {
    let claim = json!({
        "metadata": {"name": "c1", "uid": "c1", "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
        "status": {"providerID": "id", "nodeName": "n1", "conditions": [condition("Launched"), condition("Registered")]},
    });
    let labels = json!({"karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"});
    let node = json!({"metadata": {"name": "n1", "uid": "n1", "labels": labels}, "spec": {"providerID": "id"}});
    let events = [
        Event::applied::<NodeClaim>(Arc::new(typed(claim))),
        Event::applied::<v1::Node>(Arc::new(typed(node))),
        Event::applied::<v1::Pod>(Arc::new(typed(pod("a", "1", false)))),
        Event::Placed {
            node: NodeRef::claim("c1"),
            pods: vec![PodKey::new("default", "a")],
        },
    ];
    let mut cluster = Cluster::new();
    for event in events {
        cluster.apply(at(OPENED), event).unwrap();
    }
    let (snapshot, a) = (cluster.snapshot(), PodKey::new("default", "a"));
    assert!(place_in_the_making(&snapshot, &a).is_none());
    for (seconds, expected) in [(40, true), (60, false)] {
        let place = place_just_opened(&snapshot, &a, SchedulerPace::Keeps, at(OPENED + seconds));
        assert_eq!(place.is_some(), expected, "{seconds} s");
    }
}
