//! Which pods are taken to be on their way, and what becomes of the places planned for them.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::{NodeClaim, NodeRef, ObjectKey};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::Solution;
use scheduling::pod::PodKey;
use scheduling::problem::Options;
use scheduling::solution::{NewClaim, PodsOnNode};
use serde_json::{Value, json};
use state::workloads::{Workload, WorkloadKind};
use state::{Change, Cluster, Event};

use super::{ComingPod, coming_pods, gather, is_coming};
use crate::places::place_in_the_making;
use crate::provisioning::problem_for_provisioning;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn template(cpu: &str) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}})
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn replica_set(replicas: i32) -> Value {
    json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "rs"},
        "spec": {"replicas": replicas, "selector": {}, "template": template("500m")},
    })
}

fn applied(set: Value) -> Event {
    let workload = Workload::from(typed::<k8s_openapi::api::apps::v1::ReplicaSet>(set));
    Event::applied::<Workload>(Arc::new(workload))
}

fn pod(name: &str, cpu: &str) -> Event {
    Event::applied::<v1::Pod>(Arc::new(typed(pod_object(name, cpu))))
}

fn bound_pod(name: &str, node: &str) -> Event {
    let mut pod = pod_object(name, "500m");
    pod["spec"]["nodeName"] = node.into();
    pod["status"] = json!({"phase": "Running"});
    Event::applied::<v1::Pod>(Arc::new(typed(pod)))
}

fn pod_object(name: &str, cpu: &str) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true});
    let mut pod = template(cpu);
    pod["metadata"] =
        json!({"namespace": "default", "name": name, "uid": name, "ownerReferences": [owner]});
    pod["status"] = json!({"phase": "Pending", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
    ]});
    pod
}

fn claim(name: &str) -> Event {
    let claim = json!({
        "metadata": {"name": name, "uid": name, "labels": {"karpenter.sh/nodepool": "default"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
        "status": {"providerID": format!("aws:///zone/{name}"), "allocatable": {"cpu": "4", "pods": "10"},
            "conditions": [{"type": "Launched", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z", "reason": "", "message": ""}]},
    });
    Event::applied::<NodeClaim>(Arc::new(typed(claim)))
}

fn cluster(events: impl IntoIterator<Item = Event>) -> Cluster {
    let mut cluster = Cluster::new();
    tell(&mut cluster, 0, events);
    cluster
}

fn tell(cluster: &mut Cluster, seconds: i64, events: impl IntoIterator<Item = Event>) {
    for event in events {
        cluster.apply(at(seconds), event).unwrap();
    }
}

fn coming(cluster: &Cluster, seconds: i64) -> Vec<ComingPod> {
    coming_pods(&cluster.snapshot(), at(seconds))
}

/// Places all that is on its way on a claim, as a pass does.
fn place(cluster: &mut Cluster, name: &str) {
    let pods = coming(cluster, 0).into_iter();
    let pods = pods.map(|it| it.pod.key.clone()).collect();
    let node = NodeRef::claim(name);
    tell(cluster, 0, [claim(name), Event::Placed { node, pods }]);
}

#[test]
fn what_a_set_lacks_is_on_its_way_for_as_long_as_pods_keep_coming() {
    let mut cluster = cluster([applied(replica_set(3)), pod("a", "500m")]);
    assert_eq!(coming(&cluster, 1).len(), 2);
    assert_eq!(coming(&cluster, 15).len(), 2);
    assert_eq!(coming(&cluster, 16).len(), 0, "nothing came for a while");
    tell(&mut cluster, 20, [pod("b", "500m")]);
    assert_eq!(coming(&cluster, 30).len(), 1);
    tell(&mut cluster, 31, [pod("c", "500m")]);
    assert_eq!(coming(&cluster, 32).len(), 0);
}

#[test]
fn a_set_waits_for_its_turn_while_pods_of_others_come() {
    let mut waiting = replica_set(2);
    waiting["metadata"] = json!({"namespace": "default", "name": "late", "uid": "late"});
    let mut cluster = cluster([applied(waiting), applied(replica_set(100))]);
    for second in 1..100 {
        tell(
            &mut cluster,
            second * 10,
            [pod(&format!("p{second}"), "500m")],
        );
        let late = coming(&cluster, second * 10);
        let late = late.iter().filter(|it| it.pod.key.name.starts_with("late"));
        let expected = if second * 10 <= 300 { 2 } else { 0 };
        assert_eq!(late.count(), expected, "after {second}0 seconds");
    }
}

#[test]
fn pods_that_cannot_come_are_not_waited_for() {
    let with = |path: &str, value: Value| {
        let mut set = replica_set(3);
        *set.pointer_mut(path).unwrap() = value;
        set
    };
    let mut refused = replica_set(3);
    refused["status"] =
        json!({"replicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True"}]});
    let mut going = replica_set(3);
    going["metadata"]["deletionTimestamp"] = "2023-11-14T22:13:20Z".into();
    let mut spec = template("1")["spec"].clone();
    spec["schedulerName"] = "another".into();
    let elsewhere = with("/spec/template/spec", spec.clone());
    spec["schedulerName"] = "default-scheduler".into();
    spec["schedulingGates"] = json!([{"name": "later"}]);
    let gated = with("/spec/template/spec", spec.clone());
    spec["schedulingGates"] = json!([]);
    spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]);
    let with_volume = with("/spec/template/spec", spec);
    for set in [refused, going, elsewhere, gated, with_volume] {
        let told = set.to_string();
        assert_eq!(coming(&cluster([applied(set)]), 0).len(), 0, "{told}");
    }
}

#[test]
fn stateful_sets_and_jobs_are_foreseen_where_they_create_their_pods_at_once() {
    let stateful = |policy: &str| {
        let set = json!({
            "metadata": {"namespace": "default", "name": "db", "uid": "db"},
            "spec": {"replicas": 3, "selector": {}, "template": template("1"), "podManagementPolicy": policy},
        });
        Workload::from(typed::<k8s_openapi::api::apps::v1::StatefulSet>(set))
    };
    let job = |spec: Value, status: Value| {
        let mut job = json!({"metadata": {"namespace": "default", "name": "job", "uid": "job"}, "spec": spec, "status": status});
        job["spec"]["template"] = template("1");
        Workload::from(typed::<k8s_openapi::api::batch::v1::Job>(job))
    };
    let none = || json!({});
    for (workload, expected) in [
        (stateful("OrderedReady"), 0),
        (stateful("Parallel"), 3),
        (job(json!({"parallelism": 5, "completions": 8}), none()), 5),
        (
            job(
                json!({"parallelism": 5, "completions": 8}),
                json!({"succeeded": 6}),
            ),
            2,
        ),
        (job(json!({"parallelism": 5}), none()), 5),
        (job(json!({"parallelism": 5}), json!({"succeeded": 1})), 0),
        (job(json!({"parallelism": 5, "suspend": true}), none()), 0),
        (job(json!({"parallelism": 5}), json!({"failed": 1})), 0),
    ] {
        let told = format!("{workload:?}");
        let cluster = cluster([Event::applied::<Workload>(Arc::new(workload))]);
        assert_eq!(coming(&cluster, 0).len(), expected, "{told}");
    }
}

#[test]
fn former_revisions_of_deployments_are_not_kept() {
    let mut set = replica_set(0);
    set["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true},
    ]);
    let cluster = cluster([applied(replica_set(2)), applied(set)]);
    let snapshot = cluster.snapshot();
    let web = ObjectKey::new("default", "web");
    let kept = snapshot.workloads().find(WorkloadKind::ReplicaSet, &web);
    assert!(kept.is_none());
}

#[test]
fn a_pod_that_comes_takes_a_place_that_was_planned_for_its_kind() {
    let mut cluster = cluster([applied(replica_set(3))]);
    place(&mut cluster, "n1");
    let planned = coming(&cluster, 1);
    let is_on_n1 = |it: &ComingPod| it.place == Some(NodeRef::claim("n1"));
    assert!(planned.iter().all(is_on_n1), "{planned:?}");
    assert!(planned.iter().all(|it| is_coming(&it.pod.key)));

    tell(&mut cluster, 2, [pod("a", "500m")]);
    let snapshot = cluster.snapshot();
    let key = PodKey::new("default", "a");
    assert!(place_in_the_making(&snapshot, &key).is_some());
    assert_eq!(coming(&cluster, 2).len(), 2);

    let options = Options {
        plans_coming_pods: true,
        now: at(2),
        ..Options::default()
    };
    let problem =
        problem_for_provisioning(&snapshot, &[], BTreeMap::new(), options.clone()).problem;
    assert_eq!((problem.pods.len(), problem.nodes[0].pods.len()), (0, 3));
    let without = Options {
        plans_coming_pods: false,
        ..options
    };
    let problem = problem_for_provisioning(&snapshot, &[], BTreeMap::new(), without).problem;
    assert_eq!((problem.pods.len(), problem.nodes[0].pods.len()), (0, 1));
}

#[test]
fn a_pod_that_went_where_one_of_its_kind_was_planned_leaves_it_its_own_place() {
    let mut cluster = cluster([applied(replica_set(2)), claim("n1"), claim("n2")]);
    let coming_pods = coming(&cluster, 0);
    for (pod, name) in coming_pods.iter().zip(["n1", "n2"]) {
        let (node, pods) = (NodeRef::claim(name), vec![pod.pod.key.clone()]);
        tell(&mut cluster, 0, [Event::Placed { node, pods }]);
    }
    tell(&mut cluster, 1, [pod("a", "500m")]);
    let bound = bound_pod("a", "node-2");
    tell(&mut cluster, 2, [node("node-2", "n2"), bound]);
    let left = coming(&cluster, 2);
    let places: Vec<Option<NodeRef>> = left.into_iter().map(|it| it.place).collect();
    assert_eq!(
        places,
        vec![Some(NodeRef::claim("n1"))],
        "its sibling goes where it was to go"
    );
}

fn node(name: &str, claim: &str) -> Event {
    let node = json!({
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "m5.large"}},
        "spec": {"providerID": format!("aws:///zone/{claim}")},
    });
    Event::applied::<v1::Node>(Arc::new(typed(node)))
}

#[test]
fn a_pod_whose_room_one_of_its_shape_took_gets_the_place_that_this_one_had() {
    let mut cluster = cluster([
        claim("n1"),
        claim("n2"),
        node("node-1", "n1"),
        node("node-2", "n2"),
    ]);
    for (name, place) in [("a", "n1"), ("b", "n2")] {
        let (node, pods) = (NodeRef::claim(place), vec![PodKey::new("default", name)]);
        tell(
            &mut cluster,
            0,
            [pod(name, "500m"), Event::Placed { node, pods }],
        );
    }
    let place_of = |cluster: &Cluster, name: &str| {
        let snapshot = cluster.snapshot();
        let place = snapshot.place(&PodKey::new("default", name));
        place.map(|it| it.claim_name().unwrap_or_default().to_owned())
    };
    tell(&mut cluster, 1, [bound_pod("a", "node-2")]);
    assert_eq!(place_of(&cluster, "b").as_deref(), Some("n1"));
    tell(&mut cluster, 2, [bound_pod("c", "node-1")]);
    assert_eq!(place_of(&cluster, "b"), None, "it had none itself");
}

#[test]
fn a_pod_that_lost_its_place_is_named() {
    let mut cluster = cluster([
        claim("n1"),
        node("node-1", "n1"),
        pod("a", "500m"),
        pod("b", "2"),
    ]);
    let pods = ["a", "b"].map(|it| PodKey::new("default", it)).to_vec();
    tell(
        &mut cluster,
        0,
        [Event::Placed {
            node: NodeRef::claim("n1"),
            pods,
        }],
    );
    let changes = cluster.apply(at(1), bound_pod("c", "node-1")).unwrap();
    let displaced = changes.iter().filter_map(|it| match it {
        Change::PodDisplaced(pod) => Some(pod.name.as_str()),
        _ => None,
    });
    assert_eq!(displaced.collect::<Vec<_>>(), ["a"], "the other is larger");
}

#[test]
fn pods_that_no_scheduler_tried_wait_for_a_node_where_that_is_asked_for() {
    let gates = json!([{"name": "quota"}]);
    let cases = [
        (json!({}), true),
        (json!({"schedulerName": "default-scheduler"}), true),
        (json!({"schedulerName": "mine"}), false),
        (json!({"schedulingGates": gates}), false),
        (json!({"nodeName": "node-1"}), false),
    ];
    for (spec, waits) in cases {
        let mut object = pod_object("a", "500m");
        object["status"] = json!({"phase": "Pending"});
        for (name, value) in spec.as_object().unwrap() {
            object["spec"][name] = value.clone();
        }
        for (mut cluster, expected) in [
            (Cluster::planning_untried_pods(), waits),
            (Cluster::new(), false),
        ] {
            tell(
                &mut cluster,
                0,
                [Event::applied::<v1::Pod>(Arc::new(typed(object.clone())))],
            );
            let snapshot = cluster.snapshot();
            let pod = snapshot.pod(&PodKey::new("default", "a")).unwrap();
            assert_eq!(pod.is_provisionable(), expected, "{spec}");
        }
    }
}

#[test]
fn places_of_pods_that_come_otherwise_or_no_more_are_given_up() {
    let places = |cluster: &Cluster| cluster.snapshot().places().count();
    // Admission gave it more than its template says.
    let mut changed = cluster([applied(replica_set(3))]);
    place(&mut changed, "n1");
    tell(&mut changed, 1, [pod("a", "2")]);
    assert_eq!(places(&changed), 0);
    let sized = coming(&changed, 1);
    let cpus = sized.iter().map(|it| it.pod.shape.requests.get("cpu"));
    assert_eq!(
        cpus.collect::<Vec<_>>(),
        vec![2000, 2000],
        "as the newest asks for"
    );

    let mut fewer = cluster([applied(replica_set(3))]);
    place(&mut fewer, "n1");
    tell(&mut fewer, 1, [applied(replica_set(1))]);
    assert_eq!(places(&fewer), 1);
    let gone = PodKey::new("default", "web");
    tell(
        &mut fewer,
        2,
        [Event::deleted_of::<Workload>(
            WorkloadKind::ReplicaSet,
            gone,
        )],
    );
    assert_eq!(places(&fewer), 0);

    // A node that does not come leaves its pods to the next pass.
    let mut lost = cluster([applied(replica_set(3))]);
    place(&mut lost, "n1");
    tell(
        &mut lost,
        1,
        [Event::deleted::<NodeClaim>(ObjectKey::cluster("n1"))],
    );
    assert!(coming(&lost, 1).iter().all(|it| it.place.is_none()));
    tell(&mut lost, 2, [pod("a", "500m")]);
    let key = PodKey::new("default", "a");
    assert!(lost.snapshot().place(&key).is_none());
}

#[test]
fn pods_that_are_there_are_gathered_on_the_nodes_that_they_fill() {
    let mut cluster = cluster([applied(replica_set(6))]);
    tell(
        &mut cluster,
        0,
        ["a", "b", "c"].map(|name| pod(name, "500m")),
    );
    let snapshot = cluster.snapshot();
    let coming: Vec<_> = coming_pods(&snapshot, at(0));
    let mut pods: Vec<_> = snapshot.pods().cloned().collect();
    pods.extend(coming.iter().map(|it| Arc::clone(&it.pod)));
    let key = |number: usize| pods[number].key.clone();
    // One real pod on each node: 0 to 2 are real.
    let claim = |name: &str, of: [usize; 2]| NewClaim {
        pool: name.to_owned(),
        pods: of.map(key).to_vec(),
        ..NewClaim::default()
    };
    let mut solution = Solution {
        existing: vec![PodsOnNode {
            node: NodeRef::node("node"),
            pods: vec![key(3)],
        }],
        claims: vec![
            claim("one", [0, 4]),
            claim("two", [1, 5]),
            claim("three", [2, 2]),
        ],
        ..Solution::default()
    };
    solution.claims[2].pods.truncate(1);
    gather(&pods, &mut solution);
    let real = |pods: &[PodKey]| pods.iter().filter(|it| !is_coming(it)).count();
    assert_eq!(real(&solution.existing[0].pods), 1, "existing nodes first");
    let claims = solution.claims.iter();
    let claims: Vec<_> = claims
        .map(|it| (it.pool.as_str(), real(&it.pods), it.pods.len()))
        .collect();
    assert_eq!(claims, vec![("one", 2, 2)]);
}

#[test]
fn pods_with_devices_of_their_own_do_not_change_places() {
    let mut cluster = cluster([applied(replica_set(1))]);
    for name in ["a", "b"] {
        let mut object = pod_object(name, "500m");
        object["metadata"]["ownerReferences"] = json!([]);
        object["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": name}]);
        let pod = Event::applied::<v1::Pod>(Arc::new(typed(object)));
        tell(&mut cluster, 0, [pod]);
    }
    let snapshot = cluster.snapshot();
    let mut pods: Vec<_> = snapshot.pods().cloned().collect();
    assert!(Arc::ptr_eq(&pods[0].shape, &pods[1].shape), "but for these");
    pods.extend(coming_pods(&snapshot, at(0)).into_iter().map(|it| it.pod));
    let claim = |name: &str, of: &[usize]| NewClaim {
        pool: name.to_owned(),
        pods: of.iter().map(|it| pods[*it].key.clone()).collect(),
        ..NewClaim::default()
    };
    let mut solution = Solution {
        claims: vec![claim("half-there", &[0, 2]), claim("there", &[1])],
        ..Solution::default()
    };
    gather(&pods, &mut solution);
    let claims = solution.claims.iter();
    let firsts: Vec<_> = claims
        .map(|it| (it.pool.as_str(), it.pods[0].name.as_str()))
        .collect();
    assert_eq!(firsts, [("there", "b"), ("half-there", "a")]);
}

#[test]
fn only_so_many_pods_of_a_set_are_on_their_way_and_their_names_sort_as_they_count() {
    let cluster = cluster([applied(replica_set(2_000_000))]);
    let coming = coming(&cluster, 1);
    assert_eq!(coming.len(), 10_000);
    assert!(coming.is_sorted_by_key(|it| &it.pod.key));
}
