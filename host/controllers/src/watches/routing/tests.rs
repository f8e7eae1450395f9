//! Who is woken by what: an event after others, and the queues with the names of what they are to look at.

use std::sync::Arc;

use apis::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool, NodeRef, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplate};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use state::Cluster;
use state::cluster::{Event, Watched};
use state::workloads::Workload;

use super::{Reaction, reactions};

fn typed<K: DeserializeOwned>(object: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(object).unwrap())
}

fn applied<K: Watched + DeserializeOwned>(object: Value) -> Event {
    Event::applied(typed::<K>(object))
}

fn gone<K: Watched<Kind = ()>>(name: &str) -> Event {
    Event::deleted::<K>(ObjectKey::cluster(name))
}

fn pod(words: &str) -> Event {
    let has = |word: &str| words.split_whitespace().any(|it| it == word);
    let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
    let mut pod = json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "p", "resourceVersion": "1"},
        "spec": {"containers": [container]},
        "status": {"phase": if has("ended") { "Succeeded" } else { "Pending" }},
    });
    if has("bound") {
        pod["spec"]["nodeName"] = json!("n");
    } else {
        pod["status"]["conditions"] =
            json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    }
    if has("daemon") {
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true,
        }]);
    }
    if has("terminating") {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
    }
    applied::<Pod>(pod)
}

fn pod_deleted() -> Event {
    Event::deleted::<Pod>(ObjectKey::new("default", "p"))
}

fn node(words: &str) -> Event {
    let has = |word: &str| words.split_whitespace().any(|it| it == word);
    let mut node = json!({
        "metadata": {"name": "n", "uid": "n", "resourceVersion": words, "labels": {
            "karpenter.sh/nodepool": "pool", "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true", "node.kubernetes.io/instance-type": "t"}},
        "spec": {"providerID": "aws:///z/i", "taints": []},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "4"}},
    });
    if has("heartbeat") {
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!("2026-11-20T10:00:00Z");
    }
    if has("disrupted") {
        node["spec"]["taints"] = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    }
    if has("deleting") {
        node["metadata"]["deletionTimestamp"] = json!("2026-11-20T10:00:00Z");
    }
    applied::<Node>(node)
}

fn claim(version: &str, condition: &str) -> Event {
    let since = "2026-11-20T10:00:00Z";
    let condition = json!({"type": condition, "status": "True", "reason": "", "message": "",
        "lastTransitionTime": since});
    applied::<NodeClaim>(json!({
        "metadata": {"name": "c", "uid": "c", "resourceVersion": version,
            "labels": {"karpenter.sh/nodepool": "pool"}},
        "spec": {"requirements": [], "nodeClassRef":
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "class"}},
        "status": {"providerID": "aws:///z/i", "nodeName": "n", "conditions": [condition]},
    }))
}

fn pool(generation: i64, team: &str, replicas: Option<i64>) -> Event {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "class"});
    applied::<NodePool>(json!({
        "metadata": {"name": "pool", "uid": "u", "generation": generation, "labels": {"team": team}},
        "spec": {"replicas": replicas, "template": {"spec": {"nodeClassRef": class, "requirements": []}}},
    }))
}

fn class(generation: i64, ready: &str) -> Event {
    let ready = json!({"type": "Ready", "status": ready, "reason": "", "message": "",
        "lastTransitionTime": "2026-11-20T10:00:00Z"});
    applied::<Ec2NodeClass>(json!({
        "metadata": {"name": "class", "uid": "k", "generation": generation},
        "spec": {"amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []},
        "status": {"conditions": [ready]},
    }))
}

fn overlay(generation: i64) -> Event {
    applied::<NodeOverlay>(json!({
        "metadata": {"name": "o", "generation": generation},
        "spec": {"requirements": [], "weight": 1},
    }))
}

fn buffer(replicas: i64, generation: i64) -> Event {
    applied::<CapacityBuffer>(json!({
        "metadata": {"name": "b", "namespace": "default", "uid": "b", "generation": generation},
        "spec": {"podTemplateRef": {"name": "t"}, "replicas": replicas},
    }))
}

fn template() -> Event {
    let template: PodTemplate =
        serde_json::from_value(json!({"metadata": {"name": "t", "namespace": "default"}})).unwrap();
    Event::applied(Arc::new(Workload::from(template)))
}

fn word(reaction: &Reaction) -> String {
    match reaction {
        Reaction::Enqueue(queue, key) => format!("{queue:?} {}", key.name),
        Reaction::EnqueueNew(queue, key) => format!("new {queue:?} {}", key.name),
        Reaction::Forget(queue, key) => format!("not {queue:?} {}", key.name),
        Reaction::PodBound { node, planned, .. } => format!("bound {node} for {planned}"),
        Reaction::PodEnded(pod) => format!("ended {}", pod.name),
        Reaction::ClaimGone(name) => format!("gone {name}"),
        other @ (Reaction::Overlays
        | Reaction::Policies
        | Reaction::PodLeft
        | Reaction::PoolGone(_)) => {
            format!("{other:?}")
        }
    }
}

/// What follows from the last of these events.
fn woken(events: Vec<Event>) -> String {
    let mut cluster = Cluster::new();
    let mut woken = Vec::new();
    for event in events {
        let changes = cluster.apply(Timestamp::UNIX_EPOCH, event).unwrap();
        let snapshot = cluster.snapshot();
        woken = changes
            .iter()
            .flat_map(|it| reactions(it, &snapshot))
            .collect();
    }
    let words: Vec<String> = woken.iter().map(word).collect();
    words.join(", ")
}

#[test]
fn pods_wake_whom_their_coming_and_going_concerns() {
    let running = || vec![claim("1", "Launched"), node(""), pod("bound")];
    let with = |mut events: Vec<Event>, last| {
        events.push(last);
        events
    };
    let placed = || Event::Placed {
        node: NodeRef::claim("c"),
        pods: vec![ObjectKey::new("default", "p")],
    };
    let marked = || Event::MarkedForDeletion(vec![NodeRef::claim("c")]);
    let cases = [
        ("new", vec![pod("")], "PodTrigger p"),
        ("again", vec![pod(""), pod("")], ""),
        ("bound", running(), "PodEvents c"),
        (
            "a daemon's",
            vec![claim("1", "Launched"), node(""), pod("bound daemon")],
            "",
        ),
        (
            "planned",
            vec![
                claim("1", "Launched"),
                node(""),
                pod(""),
                placed(),
                pod("bound"),
            ],
            "bound n for c, PodEvents c",
        ),
        (
            "begins to end",
            with(running(), pod("bound terminating")),
            "PodEvents c",
        ),
        (
            "ended",
            with(running(), pod("bound ended")),
            "PodEvents c, ended p, PodLeft",
        ),
        (
            "deleted",
            with(running(), pod_deleted()),
            "PodEvents c, ended p, PodLeft",
        ),
        (
            "deleted after its grace period",
            with(with(running(), pod("bound terminating")), pod_deleted()),
            "ended p, PodLeft",
        ),
        (
            "deleted on a node that goes",
            with(with(running(), marked()), pod_deleted()),
            "PodEvents c, ended p, NodeTermination n",
        ),
        ("unknown", vec![pod_deleted()], ""),
    ];
    for (name, events, expected) in cases {
        assert_eq!(woken(events), expected, "{name}");
    }
}

#[test]
fn nodes_wake_their_claim_and_heartbeats_nobody() {
    let first = || vec![claim("1", "Launched"), node("")];
    let then = |event| {
        let mut events = first();
        events.push(event);
        events
    };
    let cases = [
        ("first", first(), "NodeHydration n, Lifecycle c"),
        ("heartbeat", then(node("heartbeat")), ""),
        (
            "disrupted",
            then(node("disrupted")),
            "NodeTrigger n, NodeHydration n, Lifecycle c",
        ),
        (
            "deleting",
            then(node("deleting")),
            "NodeTermination n, NodeHydration n, Lifecycle c",
        ),
        ("gone", then(gone::<Node>("n")), "Lifecycle c"),
        ("without a claim", vec![node("")], "NodeHydration n"),
        ("unknown", vec![gone::<Node>("n")], ""),
    ];
    for (name, events, expected) in cases {
        assert_eq!(woken(events), expected, "{name}");
    }
}

#[test]
fn a_node_that_we_wrote_wakes_its_claim_when_the_watch_tells() {
    let mut cluster = Cluster::new();
    let mut words = |event| {
        let changes = cluster.apply(Timestamp::UNIX_EPOCH, event).unwrap();
        let snapshot = cluster.snapshot();
        changes
            .iter()
            .flat_map(|it| reactions(it, &snapshot))
            .count()
    };
    let object = |taint: Value| {
        typed::<Node>(
            json!({"metadata": {"name": "n"}, "spec": {"providerID": "i", "taints": taint}}),
        )
    };
    words(Event::applied(object(json!([]))));
    let written = object(json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]));
    assert_eq!(words(Event::written(Arc::clone(&written))), 0);
    assert_ne!(words(Event::applied(written)), 0);
}

#[test]
fn claims_wake_the_controllers_of_their_life() {
    let life =
        "Lifecycle c, ClaimDisruption c, Expiration c, Consistency c, ClaimHydration c, Tagging c";
    let cases = [
        ("launched", vec![claim("1", "Launched")], life.to_owned()),
        (
            "told again",
            vec![claim("1", "Launched"), claim("1", "Launched")],
            life.to_owned(),
        ),
        (
            "told late",
            vec![claim("2", "Launched"), claim("1", "Launched")],
            String::new(),
        ),
        (
            "reboots",
            vec![claim("1", "Rebooting")],
            format!("Reboots c, {life}"),
        ),
        (
            "has a node",
            vec![node(""), claim("1", "Launched")],
            format!("{life}, NodeHydration n"),
        ),
        (
            "of a static pool",
            vec![pool(1, "a", Some(2)), claim("1", "Launched")],
            format!("StaticPools pool, {life}"),
        ),
        (
            "gone",
            vec![node(""), claim("1", "Launched"), gone::<NodeClaim>("c")],
            "not Lifecycle c, not ClaimDisruption c, gone c, NodeTermination n".to_owned(),
        ),
    ];
    for (name, events, expected) in cases {
        assert_eq!(woken(events), expected, "{name}");
    }
}

#[test]
fn pools_wake_who_checks_them() {
    let checks = "PoolHash pool, PoolReadiness pool, PoolValidation pool, new PoolCounter pool";
    let cases = [
        (
            "a pool",
            vec![pool(1, "a", None)],
            format!("Overlays, {checks}, Policies"),
        ),
        (
            "its status",
            vec![pool(1, "a", None), pool(1, "a", None)],
            checks.to_owned(),
        ),
        (
            "its label",
            vec![pool(1, "a", None), pool(1, "b", None)],
            format!("{checks}, Policies"),
        ),
        (
            "with claims",
            vec![
                claim("1", "Launched"),
                pool(1, "a", None),
                pool(1, "a", None),
            ],
            format!("{checks}, ClaimDisruption c"),
        ),
        (
            "of a static pool",
            vec![pool(1, "a", Some(1)), pool(1, "a", Some(1))],
            format!("{checks}, StaticPools pool"),
        ),
        (
            "pool gone",
            vec![pool(1, "a", None), gone::<NodePool>("pool")],
            "PoolGone(\"u\"), not PoolCounter pool, Policies".to_owned(),
        ),
    ];
    for (name, events, expected) in cases {
        assert_eq!(woken(events), expected, "{name}");
    }
}

#[test]
fn what_types_depend_on_wakes_overlays() {
    let cases = [
        (
            "class",
            vec![class(1, "False")],
            "Overlays, NodeClass class",
        ),
        (
            "class again",
            vec![class(1, "False"), class(1, "False")],
            "NodeClass class",
        ),
        (
            "class ready",
            vec![class(1, "False"), class(1, "True")],
            "Overlays, NodeClass class",
        ),
        (
            "class of a pool and a claim",
            vec![
                pool(1, "a", None),
                claim("1", "Launched"),
                class(1, "True"),
                class(1, "True"),
            ],
            "NodeClass class, PoolReadiness pool, ClaimDisruption c",
        ),
        (
            "class gone",
            vec![class(1, "True"), gone::<Ec2NodeClass>("class")],
            "NodeClass class",
        ),
        ("overlay", vec![overlay(1)], "Overlays"),
        ("overlay's status", vec![overlay(1), overlay(1)], ""),
        (
            "overlay gone",
            vec![overlay(1), gone::<NodeOverlay>("o")],
            "Overlays",
        ),
    ];
    for (name, events, expected) in cases {
        assert_eq!(woken(events), expected, "{name}");
    }
}

#[test]
fn buffers_wake_with_their_template_and_not_for_their_status() {
    let deleted = Event::deleted::<CapacityBuffer>(ObjectKey::new("default", "b"));
    let cases = [
        ("new", vec![buffer(1, 1)], "CapacityBuffers b"),
        ("its status", vec![buffer(1, 1), buffer(1, 2)], ""),
        (
            "more",
            vec![buffer(1, 1), buffer(2, 2)],
            "CapacityBuffers b",
        ),
        (
            "its template",
            vec![buffer(1, 1), template()],
            "CapacityBuffers b",
        ),
        ("gone", vec![buffer(1, 1), deleted], "CapacityBuffers b"),
    ];
    for (name, events, expected) in cases {
        assert_eq!(woken(events), expected, "{name}");
    }
}
