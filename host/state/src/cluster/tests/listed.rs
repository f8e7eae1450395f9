//! Lists of all that there are of a kind, with which a watch begins anew, and what went or came beside them.

use apis::Ec2NodeClass;
use k8s_openapi::api::storage::v1 as storage;

use super::*;
use crate::devices::{DeviceKind, DeviceObject};
use crate::workloads::{Workload, WorkloadKind};

const OF_CLASS: &str = "default";

/// Objects that the model has left of `a` and `b` once a list tells of `a` alone, and those of whose end it told.
struct Left {
    kept: Vec<String>,
    told: Vec<String>,
}

fn left<K: Watched>(kind: K::Kind, of: impl Fn(&str) -> Event) -> Left {
    let mut model = cluster(["a", "b"].map(of));
    let known = K::known(&model, kind);
    let first = known.into_iter().filter(|it| it.name == "a").collect();
    let changes = model.apply(at(1), Event::listed::<K>(kind, first)).unwrap();
    let kept = K::known(&model, kind).into_iter();
    Left {
        kept: kept.map(|it| it.name).collect(),
        told: changes.iter().map(gone).collect(),
    }
}

/// As [`left`], of objects that a spec is enough for.
fn plain<K: Watched<Kind = ()> + serde::de::DeserializeOwned>(spec: Value) -> Left {
    left::<K>((), |name| {
        let mut value = json!({"metadata": {"namespace": "default", "name": name}, "spec": {}, "provisioner": "p"});
        merge(&mut value, &spec);
        Event::applied::<K>(object(value))
    })
}

fn gone(change: &Change) -> String {
    match change {
        Change::PodGone { before, .. } => before.key.name.clone(),
        Change::Node {
            name, after: None, ..
        }
        | Change::NodeClaim {
            name, after: None, ..
        } => name.clone(),
        Change::NodePool(Versions {
            key,
            change: ChangedObject::Gone(_),
        })
        | Change::NodeClass(Versions {
            key,
            change: ChangedObject::Gone(_),
        })
        | Change::NodeOverlay(Versions {
            key,
            change: ChangedObject::Gone(_),
        })
        | Change::CapacityBuffer(Versions {
            key,
            change: ChangedObject::Gone(_),
        })
        | Change::Workload(key) => key.name.clone(),
        other => panic!("{other:?}"),
    }
}

fn device(kind: DeviceKind) -> Left {
    let spec = match kind {
        DeviceKind::Slice => json!({"driver": "gpu.example.com", "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}),
        DeviceKind::Class => json!({}),
        DeviceKind::Claim => json!({"devices": {}}),
        DeviceKind::Template => json!({"spec": {"devices": {}}}),
    };
    left::<DeviceObject>(kind, |name| {
        let value = json!({"metadata": {"namespace": "default", "name": name}, "spec": spec});
        Event::applied(Arc::new(DeviceObject::read(kind, &value).unwrap()))
    })
}

fn deployment(name: &str) -> Event {
    let template = json!({"spec": {"containers": [{"name": "c"}]}});
    let value = json!({"metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"replicas": 1, "selector": {}, "template": template}});
    let deployment: k8s_openapi::api::apps::v1::Deployment = serde_json::from_value(value).unwrap();
    Event::applied(Arc::new(Workload::from(deployment)))
}

#[test]
fn what_a_list_lacks_is_gone_and_told() {
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": OF_CLASS});
    let pool = json!({"template": {"spec": {"requirements": [], "nodeClassRef": class}}});
    let of_class = json!({"amiSelectorTerms": [], "subnetSelectorTerms": [], "securityGroupSelectorTerms": []});
    let attacher =
        json!({"attacher": "e", "nodeName": "n", "source": {"persistentVolumeName": "v"}});
    let agent = json!({"selector": {}, "template": {"spec": {"containers": [{"name": "c"}]}}});
    let of_name = |name: &str| claim(name, &format!("aws:///a/{name}"), json!({}));
    let cases = [
        ("pod", true, left::<v1::Pod>((), |it| pod(it, json!({})))),
        ("node", true, left::<v1::Node>((), |it| node(it, json!({})))),
        ("claim", true, left::<NodeClaim>((), of_name)),
        ("pool", true, plain::<NodePool>(json!({"spec": pool}))),
        (
            "class",
            true,
            plain::<Ec2NodeClass>(json!({"spec": of_class})),
        ),
        (
            "overlay",
            true,
            plain::<NodeOverlay>(json!({"spec": {"requirements": []}})),
        ),
        ("buffer", true, plain::<CapacityBuffer>(json!({}))),
        (
            "workload",
            true,
            left::<Workload>(WorkloadKind::Deployment, deployment),
        ),
        (
            "daemon set",
            false,
            plain::<ApiDaemonSet>(json!({"spec": agent})),
        ),
        ("budget", false, plain::<PodDisruptionBudget>(json!({}))),
        ("namespace", false, plain::<v1::Namespace>(json!({}))),
        (
            "service",
            false,
            plain::<v1::Service>(json!({"spec": {"selector": {"app": "web"}}})),
        ),
        (
            "volume claim",
            false,
            plain::<v1::PersistentVolumeClaim>(json!({})),
        ),
        ("volume", false, plain::<v1::PersistentVolume>(json!({}))),
        ("storage class", false, plain::<StorageClass>(json!({}))),
        (
            "CSI node",
            false,
            plain::<storage::CSINode>(json!({"spec": {"drivers": []}})),
        ),
        (
            "attachment",
            false,
            plain::<storage::VolumeAttachment>(json!({"spec": attacher})),
        ),
        ("slice", false, device(DeviceKind::Slice)),
        ("device class", false, device(DeviceKind::Class)),
        ("device claim", false, device(DeviceKind::Claim)),
        ("device template", false, device(DeviceKind::Template)),
    ];
    for (kind, is_told, Left { kept, told }) in cases {
        let ends: &[&str] = if is_told { &["b"] } else { &[] };
        assert_eq!((kept.len(), &kept[0][..]), (1, "a"), "{kind}");
        assert_eq!(told, ends, "{kind}");
    }
}

#[test]
fn a_list_may_lack_a_claim_once_that_only_our_own_writes_told_of() {
    const CREATED: &str = "written";
    let told = |version: &str, over: Value| {
        let mut value = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "web-1", "uid": "u", "resourceVersion": version},
            "spec": {"requirements": [], "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": OF_CLASS}},
            "status": {"providerID": "aws:///a/n1"}});
        merge(&mut value, &over);
        object::<NodeClaim>(value)
    };
    let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    for (events, is_known) in [
        (&[CREATED, "list"][..], true),
        (&[CREATED, "list", "applied"], true),
        (&[CREATED, "list", "list"], false),
        (&[CREATED, "list", "written again", "list"], false),
        (&[CREATED, "list", "list", "applied"], false),
        (&["applied", "list"], false),
        (&["applied", "written again", "list"], false),
        (&["written again", "applied", "list"], false),
        (&[CREATED, "written going", "list"], false),
    ] {
        let mut model = Cluster::new();
        for event in events {
            let event = match *event {
                CREATED => Event::written(told("1", json!({}))),
                "written again" => Event::written(told("2", json!({}))),
                "written going" => Event::written(told("3", going.clone())),
                "applied" => Event::applied(told("1", json!({}))),
                "list" => Event::listed::<NodeClaim>((), BTreeSet::new()),
                other => panic!("{other}"),
            };
            model.apply(at(0), event).unwrap();
        }
        let snapshot = model.snapshot();
        assert_eq!(snapshot.has_claim("web-1"), is_known, "{events:?}");
        assert_eq!(snapshot.nodes().len(), usize::from(is_known), "{events:?}");
    }
}

#[test]
fn a_pod_that_is_gone_gets_no_place() {
    let key = |name: &str| ObjectKey::new("default", name);
    let mut model = cluster([
        claim("web-1", "aws:///a/n1", json!({})),
        pending("a", json!({})),
        pending("b", json!({})),
        Event::deleted::<v1::Pod>(key("a")),
    ]);
    let placed = Event::Placed {
        node: NodeRef::claim("web-1"),
        pods: vec![key("a"), key("b"), key("web (ReplicaSet) #000000")],
    };
    model.apply(at(1), placed).unwrap();
    let snapshot = model.snapshot();
    let names = snapshot.places().map(|(pod, _)| pod.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["b", "web (ReplicaSet) #000000"]);
}
