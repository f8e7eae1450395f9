//! Which pods a pass takes up, told as events.

#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals read better as values than as references"
)]

use std::sync::Arc;

use apis::{NodeClaim, NodeRef};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::problem::Options;
use serde_json::{Value, json};
use state::{Cluster, Event};

use super::problem_for_provisioning;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

fn pod(name: &str, over: Value) -> Event {
    let mut value = json!({
        "metadata": {"namespace": "default", "name": name, "uid": name, "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true}]},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]},
        "status": {"phase": "Pending"}
    });
    merge(&mut value, &over);
    Event::applied::<v1::Pod>(object(value))
}

fn bound(name: &str, node: &str) -> Event {
    pod(
        name,
        json!({"spec": {"nodeName": node}, "status": {"phase": "Running"}}),
    )
}

fn pending(name: &str, over: Value) -> Event {
    let mut value = json!({"status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}});
    merge(&mut value, &over);
    pod(name, value)
}

fn node(name: &str) -> Event {
    let value = json!({
        "metadata": {"name": name, "uid": name, "labels": {
            "karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "m5.large",
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}},
        "spec": {"providerID": format!("aws:///a/{name}")},
        "status": {"capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
            "allocatable": {"cpu": "1930m", "memory": "7Gi", "pods": "29"},
            "conditions": [{"type": "Ready", "status": "True"}]}
    });
    Event::applied::<v1::Node>(object(value))
}

fn claim(name: &str, provider_id: &str) -> Event {
    let value = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": {"karpenter.sh/nodepool": "web"}},
        "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "startupTaints": [{"key": "example.com/agent", "effect": "NoSchedule"}]},
        "status": {"providerID": provider_id,
            "capacity": {"cpu": "2", "nvidia.com/gpu": "1"}, "allocatable": {"cpu": "1900m", "nvidia.com/gpu": "1"}}
    });
    Event::applied::<NodeClaim>(object(value))
}

fn cluster(events: impl IntoIterator<Item = Event>) -> Cluster {
    let mut cluster = Cluster::new();
    for event in events {
        cluster.apply(at(0), event).unwrap();
    }
    cluster
}

#[test]
fn the_problem_holds_pending_pods_and_pods_of_leaving_nodes() {
    let mut model = cluster([
        claim("web-1", "aws:///a/n1"),
        node("n1"),
        bound("moves", "n1"),
        pod(
            "stays",
            json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}),
        ),
        pending("waits", json!({})),
        pending("preempts", json!({"status": {"nominatedNodeName": "n1"}})),
        pending(
            "opts-out",
            json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}]}}}}}),
        ),
        pending(
            "lost-volume",
            json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]}}),
        ),
        pod("fresh", json!({})),
    ]);
    let names = |model: &Cluster| {
        let input = problem_for_provisioning(
            &model.snapshot(),
            &[],
            Options {
                now: at(0),
                ..Options::default()
            },
        );
        let mut names: Vec<_> = input
            .problem
            .pods
            .iter()
            .map(|pod| pod.key.name.clone())
            .collect();
        names.sort();
        (names.join(" "), input)
    };
    let (before, input) = names(&model);
    assert_eq!(before, "waits");
    let ignored: Vec<_> = input
        .ignored
        .iter()
        .map(|(key, why)| format!("{}: {why}", key.name))
        .collect();
    assert_eq!(
        ignored,
        [
            "lost-volume: persistentvolumeclaim \"gone\" not found",
            "opts-out: pod requires nodes without a nodepool"
        ]
    );
    model
        .apply(at(1), Event::MarkedForDeletion(vec![NodeRef::node("n1")]))
        .unwrap();
    let (after, input) = names(&model);
    assert_eq!(after, "moves waits");
    let node = &input.problem.nodes[0];
    assert!(!node.is_schedulable);
    assert_eq!(
        node.pods.len(),
        1,
        "pods on the move are not counted where they were"
    );
}
