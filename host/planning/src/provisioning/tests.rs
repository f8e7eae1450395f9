//! Which pods a pass takes up, told as events.

#![expect(
    clippy::needless_pass_by_value,
    reason = "JSON literals read better as values than as references"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::{CapacityBuffer, NodeClaim, NodeRef};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use scheduling::pod::PodKey;
use scheduling::problem::Options;
use scheduling::ranking::PriceRank;
use scheduling::{Interrupt, solve};
use serde_json::{Value, json};
use state::devices::{DeviceKind, DeviceObject};
use state::missing_pods::is_coming;
use state::workloads::Workload;
use state::{Cluster, Event};

use super::problem_for_provisioning;
use crate::capacity_buffer::virtual_pods;

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

fn node(name: &str, over: Value) -> Event {
    let mut value = json!({
        "metadata": {"name": name, "uid": name, "labels": {
            "karpenter.sh/nodepool": "web", "node.kubernetes.io/instance-type": "m5.large",
            "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}},
        "spec": {"providerID": format!("aws:///a/{name}")},
        "status": {"capacity": {"cpu": "2", "memory": "8Gi", "pods": "29"},
            "allocatable": {"cpu": "1930m", "memory": "7Gi", "pods": "29"},
            "conditions": [{"type": "Ready", "status": "True"}]}
    });
    merge(&mut value, &over);
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
        node("n1", json!({})),
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
            BTreeMap::new(),
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

#[test]
fn volumes_of_pods_that_keep_their_places_count_on_their_node() {
    let young = json!({"metadata": {"labels": {"karpenter.sh/initialized": null}}});
    let mut model = cluster([
        claim("web-1", "aws:///a/n1"),
        node("n1", young),
        Event::applied::<StorageClass>(object(json!({
            "metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer"}))),
        Event::applied::<CSINode>(object(json!({
            "metadata": {"name": "n1"},
            "spec": {"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}}]}}))),
    ]);
    let name = |number: usize| format!("p{number:02}");
    for name in (0..40).map(name) {
        let volume = Event::applied::<v1::PersistentVolumeClaim>(object(json!({
            "metadata": {"namespace": "default", "name": name},
            "spec": {"storageClassName": "gp3"}})));
        let spec = json!({
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "10m"}}}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]});
        for event in [volume, pending(&name, json!({"spec": spec}))] {
            model.apply(at(0), event).unwrap();
        }
    }
    let kept = (0..20).map(|number| PodKey::new("default", &name(number)));
    let placed = Event::Placed {
        node: NodeRef::claim("web-1"),
        pods: kept.collect(),
    };
    model.apply(at(0), placed).unwrap();
    let options = Options {
        now: at(0),
        ..Options::default()
    };
    let problem =
        problem_for_provisioning(&model.snapshot(), &[], BTreeMap::new(), options).problem;
    let node = &problem.nodes[0];
    assert_eq!((node.pods.len(), problem.pods.len()), (20, 20));
    assert_eq!(node.volumes["ebs.csi.aws.com"].len(), 20);
    let solution = solve(&problem, &PriceRank, &Interrupt::never());
    assert_eq!(solution.existing[0].pods.len(), 5, "the node takes 25");
}

#[test]
fn a_volume_of_a_running_pod_counts_whatever_becomes_of_its_claim() {
    let bound_to = |volume: &str| json!({"storageClassName": "gp3", "volumeName": volume});
    let going = json!({"deletionTimestamp": "2023-11-14T22:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]});
    for (of_claim, of_volume) in [
        (
            json!({"metadata": going, "spec": bound_to("pv")}),
            json!({}),
        ),
        (json!({"spec": bound_to("pv")}), json!({})),
        (
            json!({"spec": bound_to("pv"), "status": {"phase": "Lost"}}),
            json!({}),
        ),
        (
            json!({"spec": bound_to("pv"),
                "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}),
            json!({"metadata": going}),
        ),
        (
            json!({"metadata": going, "spec": {"storageClassName": "gp3"}}),
            json!({}),
        ),
    ] {
        let mut claimed = json!({"metadata": {"namespace": "default", "name": "data"}});
        merge(&mut claimed, &of_claim);
        let mut volume = json!({"metadata": {"name": "pv"}, "spec": {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}});
        merge(&mut volume, &of_volume);
        let model = cluster([
            claim("web-1", "aws:///a/n1"),
            node("n1", json!({})),
            Event::applied::<StorageClass>(object(json!({
                "metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com"}))),
            Event::applied::<v1::PersistentVolumeClaim>(object(claimed)),
            Event::applied::<v1::PersistentVolume>(object(volume)),
            pod(
                "runs",
                json!({"status": {"phase": "Running"}, "spec": {"nodeName": "n1",
                    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}}),
            ),
        ]);
        let options = Options {
            now: at(0),
            ..Options::default()
        };
        let problem =
            problem_for_provisioning(&model.snapshot(), &[], BTreeMap::new(), options).problem;
        let counted = problem.nodes[0].volumes.get("ebs.csi.aws.com");
        assert_eq!(
            counted.map(BTreeSet::len),
            Some(1),
            "{of_claim} {of_volume}"
        );
    }
}

#[test]
fn a_buffer_comes_to_a_bounded_number_of_pods() {
    let template = json!({
        "metadata": {"namespace": "default", "name": "room"},
        "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}});
    let template: v1::PodTemplate = serde_json::from_value(template).unwrap();
    let buffer = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"namespace": "default", "name": "room", "uid": "room"},
        "spec": {"podTemplateRef": {"name": "room"}, "replicas": 1_000_000_000}});
    let model = cluster([
        Event::applied::<Workload>(Arc::new(Workload::from(template))),
        Event::applied::<CapacityBuffer>(object(buffer)),
    ]);
    let pods = virtual_pods(&model.snapshot());
    assert_eq!(pods.len(), 10_000);
    let names: BTreeSet<&str> = pods.iter().map(|it| it.key.name.as_str()).collect();
    assert_eq!(names.len(), pods.len());
    for pod in &pods {
        let name = &pod.key.name;
        assert!(
            !apis::validation::is_qualified_name(name),
            "a real pod may be called {name}"
        );
        assert!(!is_coming(&pod.key), "somebody would wait for {name}");
    }
}

#[test]
fn devices_of_pods_that_keep_their_places_are_theirs() {
    let young = json!({"metadata": {"labels": {"karpenter.sh/initialized": null}}});
    let mut model = cluster([claim("web-1", "aws:///a/n1"), node("n1", young)]);
    let slice = json!({"metadata": {"name": "n1"}, "spec": {
        "driver": "gpu.example.com", "allNodes": true,
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d0"}, {"name": "d1"}]}});
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"selectors": []}});
    let mut objects = vec![(DeviceKind::Slice, slice), (DeviceKind::Class, class)];
    let name = |number: usize| format!("p{number}");
    let requests = json!([{"name": "r", "exactly": {"deviceClassName": "gpu"}}]);
    for name in (0..3).map(name) {
        let claim = json!({"metadata": {"namespace": "default", "name": name},
            "spec": {"devices": {"requests": requests}}, "status": {}});
        objects.push((DeviceKind::Claim, claim));
        let claims = json!([{"name": "gpu", "resourceClaimName": name}]);
        let pod = pending(&name, json!({"spec": {"resourceClaims": claims}}));
        model.apply(at(0), pod).unwrap();
    }
    for (kind, value) in objects {
        let object = DeviceObject::read(kind, &value).unwrap();
        let event = Event::applied::<DeviceObject>(Arc::new(object));
        model.apply(at(0), event).unwrap();
    }
    let placed = Event::Placed {
        node: NodeRef::claim("web-1"),
        pods: vec![PodKey::new("default", &name(0))],
    };
    model.apply(at(0), placed).unwrap();
    let options = Options {
        now: at(0),
        ignores_devices: false,
        ..Options::default()
    };
    let problem =
        problem_for_provisioning(&model.snapshot(), &[], BTreeMap::new(), options).problem;
    assert_eq!((problem.nodes[0].pods.len(), problem.pods.len()), (1, 2));
    let solution = solve(&problem, &PriceRank, &Interrupt::never());
    assert_eq!(solution.existing[0].pods.len(), 1, "it has two devices");
}
