//! Which writes follow from what a cluster tells.

use serde_json::json;

use super::*;
use crate::account::ZoneMarket;
use crate::slim;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn told(kind: ReadKind, object: Value) -> ObjectChange {
    ObjectChange {
        kind,
        object: slim(kind, object),
        is_gone: false,
    }
}

fn gone(kind: ReadKind, object: Value) -> ObjectChange {
    ObjectChange {
        is_gone: true,
        ..told(kind, object)
    }
}

fn set(replicas: u32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "a", "uid": "set", "ownerReferences": [{"kind": "Deployment"}]},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "m"}]}}},
    })
}

fn pod(name: &str, node: &str, owner: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "a", "uid": name,
            "ownerReferences": [{"controller": true, "kind": owner, "uid": "set", "name": "web"}]},
        "spec": {"nodeName": node, "containers": [{"name": "m"}, {"name": "sidecar"}]},
        "status": {"phase": "Running", "startTime": "1970-01-01T00:00:10Z"},
    })
}

fn node(name: &str, node_pool: Option<&str>) -> Value {
    let labels = node_pool.map_or_else(|| json!({}), |it| json!({"karpenter.sh/nodepool": it}));
    json!({"metadata": {"name": name, "labels": labels}, "spec": {"providerID": format!("aws:///z/{name}")}})
}

/// A mirror that has begun with these objects, and what it wrote for them.
fn begun(changes: Vec<ObjectChange>, claims: Vec<Value>) -> (Mirror, Vec<MirrorWrite>) {
    let mut gathered = Gathered::default();
    gathered.apply(told(
        ReadKind::Namespaces,
        json!({"metadata": {"name": "a"}}),
    ));
    for change in changes {
        gathered.apply(change);
    }
    let market = ZoneMarket {
        is_sold_in: &|_| true,
        zone_id: &|_, _| String::new(),
    };
    let account = Account::of(&gathered, &market);
    let mut mirror = Mirror::new(account, StandIn::new("s"));
    mirror.classes(&gathered, json!({"metadata": {}}));
    let writes = mirror.start(gathered, claims);
    (mirror, writes)
}

fn restored(writes: &[MirrorWrite]) -> Vec<String> {
    let name = |write: &MirrorWrite| match write {
        MirrorWrite::Restore { kind, object } => Some(format!("{kind:?} {}", key_of(object).name)),
        _ => None,
    };
    writes.iter().filter_map(name).collect()
}

#[test]
fn a_shadow_starts_with_the_nodes_that_it_can_have_and_with_all_pods() {
    let (_, writes) = begun(
        vec![
            told(ReadKind::Nodes, node("bare", None)),
            told(ReadKind::Nodes, node("own", Some("p"))),
            told(ReadKind::Nodes, node("strange", Some("p"))),
            told(ReadKind::ReplicaSets, set(3)),
            told(ReadKind::Pods, pod("p1", "own", "ReplicaSet")),
            told(ReadKind::Pods, pod("p2", "strange", "ReplicaSet")),
            told(ReadKind::Pods, pod("daemon", "strange", "DaemonSet")),
        ],
        vec![json!({"metadata": {"name": "c"}, "status": {"providerID": "aws:///z/own"}})],
    );
    let expected = [
        "NodeClaims c",
        "Nodes bare",
        "Nodes own",
        "ReplicaSets web",
        "Pods p1",
        "Pods p2",
    ];
    assert_eq!(restored(&writes), expected);
    let MirrorWrite::Restore { object, .. } = writes.last().unwrap() else {
        panic!("{writes:?}")
    };
    assert_eq!(
        object["spec"].get("nodeName"),
        None,
        "its node is none of the shadow's"
    );
    assert_eq!(object["status"], json!({"phase": "Pending"}));
}

#[test]
fn pods_that_karpenter_moves_are_no_news() {
    let (mut mirror, _) = begun(
        vec![
            told(ReadKind::ReplicaSets, set(1)),
            told(ReadKind::Pods, pod("p1", "n", "ReplicaSet")),
        ],
        Vec::new(),
    );
    let writes = [
        mirror.change(gone(ReadKind::Pods, pod("p1", "n", "ReplicaSet")), at(20)),
        mirror.change(told(ReadKind::Pods, pod("p2", "m", "ReplicaSet")), at(21)),
        mirror.change(told(ReadKind::ReplicaSets, set(1)), at(22)),
    ];
    assert_eq!(writes.concat(), []);
    let scaled = mirror.change(told(ReadKind::ReplicaSets, set(5)), at(23));
    let [MirrorWrite::Update { object, .. }] = &scaled[..] else {
        panic!("{scaled:?}")
    };
    assert_eq!(object["spec"]["replicas"], 5);
}

#[test]
fn labels_and_annotations_that_the_cluster_takes_back_are_taken_back_in_the_shadow() {
    let labelled = |kind: ReadKind, labels: Value| {
        let mut object = match kind {
            ReadKind::ReplicaSets => set(1),
            _ => json!({"metadata": {"name": "x"}, "spec": {}}),
        };
        object["metadata"]["labels"] = labels;
        object["metadata"]["annotations"] = json!({"mortise.dev/a": "1"});
        told(kind, object)
    };
    for kind in [ReadKind::NodePools, ReadKind::ReplicaSets] {
        let first = labelled(kind, json!({"a": "1", "b": "1"}));
        let (mut mirror, _) = begun(
            vec![first, told(ReadKind::Pods, pod("p1", "n", "ReplicaSet"))],
            Vec::new(),
        );
        let mut later = labelled(kind, json!({"b": "2"}));
        later.object["metadata"]["annotations"] = Value::Null;
        let writes = mirror.change(later, at(20));
        let [MirrorWrite::Update { object, .. }] = &writes[..] else {
            panic!("{writes:?}")
        };
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"], json!({"a": null, "b": "2"}), "{kind:?}");
        let annotations = json!({"mortise.dev/a": null});
        assert_eq!(metadata["annotations"], annotations, "{kind:?}");
        // It is said once: what the shadow's own controllers write by that name later stays.
        let again = mirror.change(labelled(kind, json!({"b": "3"})), at(21));
        let [MirrorWrite::Update { object, .. }] = &again[..] else {
            panic!("{again:?}")
        };
        assert_eq!(object["metadata"]["labels"], json!({"b": "3"}), "{kind:?}");
    }
}

#[test]
fn templates_ask_for_what_admission_added() {
    let (mut mirror, writes) = begun(
        vec![
            told(ReadKind::ReplicaSets, set(1)),
            told(ReadKind::Pods, pod("p1", "n", "ReplicaSet")),
        ],
        Vec::new(),
    );
    let containers = |write: &MirrorWrite| match write {
        MirrorWrite::Restore { object, .. } => object["spec"]["template"]["spec"]["containers"]
            .as_array()
            .unwrap()
            .len(),
        _ => 0,
    };
    assert_eq!(containers(&writes[0]), 2);
    // One that comes later is held for its first pod, and not for long.
    let mut late = set(1);
    late["metadata"]["uid"] = json!("late");
    late["metadata"]["name"] = json!("late");
    assert_eq!(
        mirror.change(told(ReadKind::ReplicaSets, late.clone()), at(1)),
        []
    );
    let mut first = pod("p9", "", "ReplicaSet");
    first["metadata"]["ownerReferences"][0]["uid"] = json!("late");
    assert_eq!(
        containers(&mirror.change(told(ReadKind::Pods, first), at(2))[0]),
        2
    );
    late["metadata"]["uid"] = json!("later");
    late["metadata"]["name"] = json!("later");
    assert_eq!(mirror.change(told(ReadKind::ReplicaSets, late), at(3)), []);
    assert_eq!(mirror.tick(&[], at(4)), []);
    assert_eq!(containers(&mirror.tick(&[], at(5))[0]), 1);
}

#[test]
fn a_workload_that_is_idle_when_its_hold_ends_is_mirrored_once_it_is_not() {
    // It is held from second 1; its pod is told of in second 2, or in time for the end of the hold, or never.
    for pod_at in [Some(2), Some(3), None] {
        let other = json!({"metadata": {"name": "x", "namespace": "a"}, "spec": {}});
        let (mut mirror, _) = begun(vec![told(ReadKind::StatefulSets, other)], Vec::new());
        assert_eq!(
            mirror.change(told(ReadKind::ReplicaSets, set(3)), at(1)),
            []
        );
        assert_eq!(
            mirror.change(told(ReadKind::ReplicaSets, set(0)), at(2)),
            []
        );
        if let Some(second) = pod_at {
            let first = told(ReadKind::Pods, pod("p1", "", "ReplicaSet"));
            let restores = |it: &MirrorWrite| matches!(it, MirrorWrite::Restore { kind, .. } if kind.is_workload());
            assert!(!mirror.change(first, at(second)).iter().any(restores));
        }
        assert_eq!(mirror.tick(&[], at(3)), []);
        let mut writes = mirror.change(told(ReadKind::ReplicaSets, set(5)), at(9));
        writes.extend(mirror.tick(&[], at(11)));
        assert_eq!(restored(&writes), ["ReplicaSets web"], "{pod_at:?}");
    }
}

#[test]
fn a_daemon_set_rolls_when_the_clusters_does() {
    let daemons = |image: &str| {
        json!({
            "metadata": {"name": "d", "namespace": "a", "uid": "d"},
            "spec": {"template": {"spec": {"containers": [{"name": "m", "image": image}]}},
                "updateStrategy": {"type": "RollingUpdate"}},
        })
    };
    let (mut mirror, writes) = begun(vec![told(ReadKind::DaemonSets, daemons("1"))], Vec::new());
    let strategy = |write: &MirrorWrite| match write {
        MirrorWrite::Restore { object, .. } | MirrorWrite::Update { object, .. } => object["spec"]
            ["updateStrategy"]["type"]
            .as_str()
            .unwrap()
            .to_owned(),
        _ => String::new(),
    };
    assert_eq!(strategy(&writes[0]), "OnDelete");
    let rolled = mirror.change(told(ReadKind::DaemonSets, daemons("2")), at(1));
    assert_eq!(strategy(&rolled[0]), "RollingUpdate");
}

#[test]
fn a_job_of_the_shadow_works_for_as_long_as_the_clusters() {
    let job = json!({"metadata": {"name": "web", "namespace": "a", "uid": "set"}, "spec": {"template": {"spec": {}}}});
    let (mut mirror, writes) = begun(
        vec![
            told(ReadKind::Jobs, job.clone()),
            told(ReadKind::Pods, pod("p1", "n", "Job")),
        ],
        Vec::new(),
    );
    let MirrorWrite::Restore { object, .. } = &writes[0] else {
        panic!("{writes:?}")
    };
    assert_eq!(
        object["spec"]["template"]["metadata"]["annotations"]["sim.mortise.dev/run-seconds"],
        RUNS_ON_TEXT
    );
    let mut ended = pod("p1", "n", "Job");
    ended["status"]["phase"] = json!("Succeeded");
    assert_eq!(mirror.change(told(ReadKind::Pods, ended), at(40)), []);
    assert_eq!(mirror.awaited(), BTreeSet::from(["a"]));
    // The Job and its pods go, and the shadow's pod, which started 50 s later, has yet to end.
    assert_eq!(mirror.change(gone(ReadKind::Jobs, job), at(50)), []);
    let mut there = pod("q1", "m", "Job");
    there["status"]["startTime"] = json!("1970-01-01T00:01:00Z");
    assert_eq!(mirror.tick(&[there.clone()], at(89)), []);
    let is_known = |mirror: &Mirror| mirror.workloads.own(&pod("p2", "n", "Job"));
    assert!(is_known(&mirror), "its pods are not mirrored one by one");
    let ends = mirror.tick(&[there], at(90));
    let key = ObjectKey::new("a", "web");
    assert_eq!(
        ends,
        [
            MirrorWrite::Finish {
                pod: ObjectKey::new("a", "q1"),
                phase: "Succeeded".to_owned()
            },
            MirrorWrite::Delete {
                kind: ReadKind::Jobs,
                key
            },
        ]
    );
    assert!(!is_known(&mirror), "nothing is left of it");
}

const RUNS_ON_TEXT: &str = "315360000";

#[test]
fn pods_without_a_controller_that_the_shadow_has_come_and_go_one_by_one() {
    let (mut mirror, _) = begun(vec![told(ReadKind::Nodes, node("bare", None))], Vec::new());
    let bare = || pod("x", "somewhere", "Workflow");
    let came = mirror.change(told(ReadKind::Pods, bare()), at(1));
    let [MirrorWrite::Restore { object, .. }] = &came[..] else {
        panic!("{came:?}")
    };
    assert_eq!(object["spec"].get("nodeName"), None);
    assert_eq!(mirror.change(told(ReadKind::Pods, bare()), at(2)), []);
    let went = mirror.change(gone(ReadKind::Pods, bare()), at(3));
    assert_eq!(
        went,
        [MirrorWrite::Delete {
            kind: ReadKind::Pods,
            key: ObjectKey::new("a", "x")
        }]
    );
    // A pod of the kubelet's own stays where it is, if that is in the shadow.
    let is_static = |node: &str| told(ReadKind::Pods, pod("static", node, "Node"));
    assert_eq!(mirror.change(is_static("elsewhere"), at(4)), []);
    assert_eq!(mirror.change(is_static("bare"), at(5)).len(), 1);
}

#[test]
fn bare_nodes_follow_the_cluster_and_others_do_not() {
    let (mut mirror, _) = begun(vec![told(ReadKind::Nodes, node("bare", None))], Vec::new());
    assert_eq!(
        mirror.change(told(ReadKind::Nodes, node("bare", None)), at(1)),
        [],
        "nothing changed"
    );
    let mut cordoned = node("bare", None);
    cordoned["spec"]["unschedulable"] = json!(true);
    assert_eq!(
        mirror.change(told(ReadKind::Nodes, cordoned), at(2)).len(),
        1
    );
    assert_eq!(
        mirror.change(told(ReadKind::Nodes, node("own", Some("p"))), at(3)),
        []
    );
    let went = mirror.change(gone(ReadKind::Nodes, node("bare", None)), at(4));
    assert_eq!(
        went,
        [MirrorWrite::Delete {
            kind: ReadKind::Nodes,
            key: ObjectKey::cluster("bare")
        }]
    );
}

#[test]
fn a_node_that_boots_is_ready_in_the_shadow_and_a_sick_one_stays_sick() {
    let booting = |label: &str| {
        let mut node = node("own", Some("p"));
        node["metadata"]["labels"][label] = json!("true");
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
        node["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready"}, {"key": "other"}]);
        let claim = json!({"metadata": {"name": "c"}, "status": {"providerID": "aws:///z/own"}});
        let (_, writes) = begun(vec![told(ReadKind::Nodes, node)], vec![claim]);
        let Some(MirrorWrite::Restore { object, .. }) = writes.last() else {
            panic!("{writes:?}")
        };
        let taints = object["spec"]["taints"].as_array().unwrap().len();
        (
            object["status"]["conditions"][0]["status"]
                .as_str()
                .unwrap()
                .to_owned(),
            taints,
        )
    };
    assert_eq!(booting("karpenter.sh/registered"), ("True".to_owned(), 1));
    assert_eq!(booting("karpenter.sh/initialized"), ("False".to_owned(), 2));
}

#[test]
fn what_objects_name_and_nobody_told_is_there_all_the_same() {
    let mut gathered = Gathered::default();
    let mut important = pod("p", "n", "ReplicaSet");
    important["spec"]["priorityClassName"] = json!("high");
    important["spec"]["priority"] = json!(1000);
    gathered.apply(told(ReadKind::Pods, important));
    let market = ZoneMarket {
        is_sold_in: &|_| true,
        zone_id: &|_, _| String::new(),
    };
    let mut mirror = Mirror::new(Account::of(&gathered, &market), StandIn::new("s"));
    let classes = mirror.classes(&gathered, json!({"metadata": {}}));
    assert_eq!(
        restored(&classes),
        ["Ec2NodeClasses mortise-shadow", "PriorityClasses high"]
    );
    assert_eq!(
        restored(&mirror.start(gathered, Vec::new())),
        ["Namespaces a", "Pods p"]
    );
    let mut elsewhere = set(1);
    elsewhere["metadata"]["namespace"] = json!("b");
    let writes = mirror.change(told(ReadKind::ReplicaSets, elsewhere), at(1));
    assert_eq!(restored(&writes), ["Namespaces b", "ReplicaSets web"]);
}
