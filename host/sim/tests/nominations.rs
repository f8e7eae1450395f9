//! What the simulated scheduler makes of `status.nominatedNodeName`, as `kube-scheduler` 1.36.3 did when it was asked:
//! nominated pods go where they are nominated, and others leave them their room.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its world has failed"
)]

use std::sync::Arc;

use api_server::{Resource, Selection};
use serde_json::{Value, json};
use sim::{SimulatedWorld, WorldConfig};
use tokio::time::{Duration, sleep};

/// Nodes of four CPUs, each for one pod of three and one of one; small pods are seen first.
const NODES: usize = 4;

fn world(kubernetes_minor: u32) -> Arc<SimulatedWorld> {
    let world = SimulatedWorld::new(WorldConfig {
        kubernetes_minor,
        ..WorldConfig::default()
    });
    tokio::spawn(Arc::clone(&world).run());
    world
}

fn create_node(world: &SimulatedWorld, number: usize) {
    create_zonal_node(world, number, "z0");
}

fn create_zonal_node(world: &SimulatedWorld, number: usize, zone: &str) {
    let labels = json!({"topology.kubernetes.io/zone": zone});
    let amounts = json!({"cpu": "4", "memory": "64Gi", "pods": "110"});
    let taints = json!([{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]);
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{number}"), "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    world.api().create(&Resource::NODES, "", node).unwrap();
}

fn open_nodes<const N: usize>(world: &SimulatedWorld, names: [&str; N]) {
    for name in names {
        let open = json!({"spec": {"taints": null}});
        let nodes = Resource::NODES;
        world.api().patch_merge(&nodes, "", name, open).unwrap();
    }
}

fn create_pod(world: &SimulatedWorld, name: &str, cpu: &str) {
    create_pod_with(world, name, (cpu, json!([])));
}

fn create_spread_pod(world: &SimulatedWorld, name: &str) {
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "p"}},
    }]);
    create_pod_with(world, name, ("1", spread));
}

fn create_pod_with(world: &SimulatedWorld, name: &str, (cpu, spread): (&str, Value)) {
    let container = json!({"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}});
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "p"}},
        "spec": {"containers": [container], "topologySpreadConstraints": spread},
    });
    world.api().create(&Resource::PODS, "default", pod).unwrap();
}

fn nominate(world: &SimulatedWorld, pod: &str, node: &str) {
    let status = json!({"status": {"nominatedNodeName": node}});
    let pods = Resource::PODS;
    world
        .api()
        .patch_merge_status(&pods, "default", pod, status)
        .unwrap();
}

fn pod(world: &SimulatedWorld, name: &str) -> Arc<Value> {
    world.api().get(&Resource::PODS, "default", name).unwrap()
}

/// Pods without a node, and pods on another than that of their number, once all nodes are open.
async fn play(is_told: bool) -> (usize, usize) {
    let world = world(35);
    for number in 0..NODES {
        create_pod(&world, &format!("s{number}"), "1");
    }
    sleep(Duration::from_secs(1)).await;
    for number in 0..NODES {
        create_pod(&world, &format!("b{number}"), "3");
    }
    (0..NODES).for_each(|number| create_node(&world, number));
    sleep(Duration::from_secs(2)).await;
    for number in 0..NODES {
        let node = format!("n{number}");
        if is_told {
            nominate(&world, &format!("s{number}"), &node);
            nominate(&world, &format!("b{number}"), &node);
        }
        open_nodes(&world, [&*node]);
        sleep(Duration::from_millis(300)).await;
    }
    sleep(Duration::from_secs(5)).await;
    let pods = world.api().list(&Resource::PODS, &Selection::default());
    let place = |pod: &Arc<Value>| pod["spec"]["nodeName"].as_str().map(str::to_owned);
    let own = |pod: &Arc<Value>| format!("n{}", &pod["metadata"]["name"].as_str().unwrap()[1..]);
    let waiting = pods.iter().filter(|pod| place(pod).is_none()).count();
    let astray = pods
        .iter()
        .filter(|pod| place(pod).is_some_and(|node| node != own(pod)));
    (waiting, astray.count())
}

#[tokio::test(start_paused = true)]
async fn pods_go_where_they_are_nominated() {
    assert_eq!(play(true).await, (0, 0));
    let (waiting, astray) = play(false).await;
    assert!(waiting > 0 && astray > 0, "{waiting} {astray}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_higher_priority_takes_the_room_all_the_same() {
    let world = world(35);
    create_pod(&world, "nominated", "3");
    create_node(&world, 0);
    sleep(Duration::from_secs(1)).await;
    nominate(&world, "nominated", "n0");
    let mut important = (*pod(&world, "nominated")).clone();
    important["metadata"] = json!({"name": "important"});
    let spec = important["spec"].as_object_mut().unwrap();
    spec.remove("priority");
    spec.insert(
        "priorityClassName".to_owned(),
        json!("system-cluster-critical"),
    );
    important["status"] = json!({});
    let pods = Resource::PODS;
    world.api().create(&pods, "default", important).unwrap();
    open_nodes(&world, ["n0"]);
    sleep(Duration::from_secs(5)).await;
    assert_eq!(pod(&world, "important")["spec"]["nodeName"], "n0");
    assert!(pod(&world, "nominated")["spec"]["nodeName"].is_null());
}

#[tokio::test(start_paused = true)]
async fn who_went_elsewhere_holds_no_room_where_it_was_nominated() {
    let world = world(35);
    (0..2).for_each(|number| create_node(&world, number));
    create_pod(&world, "early", "3");
    nominate(&world, "early", "n0");
    for (node, next) in [("n1", "late"), ("n0", "later")] {
        open_nodes(&world, [node]);
        sleep(Duration::from_secs(5)).await;
        create_pod(&world, next, "3");
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(pod(&world, "early")["spec"]["nodeName"], "n1");
    assert_eq!(pod(&world, "late")["spec"]["nodeName"], "n0");
    assert!(pod(&world, "later")["spec"]["nodeName"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_bound_cannot_be_nominated() {
    let world = world(35);
    create_node(&world, 0);
    create_pod(&world, "bound", "3");
    let pods = Resource::PODS;
    open_nodes(&world, ["n0"]);
    sleep(Duration::from_secs(5)).await;
    let status = json!({"status": {"nominatedNodeName": "n1"}});
    let refused = world
        .api()
        .patch_merge_status(&pods, "default", "bound", status)
        .unwrap_err();
    assert!(refused.to_string().contains("already bound"), "{refused}");
}

/// What `kube-scheduler` 1.36.3 was seen to do; its source has done so since 1.30 at least.
#[tokio::test(start_paused = true)]
async fn a_pod_that_is_tried_in_vain_loses_its_nomination() {
    for minor in [30, 36] {
        let world = world(minor);
        create_pod(&world, "large", "8");
        create_node(&world, 0);
        sleep(Duration::from_secs(1)).await;
        nominate(&world, "large", "n0");
        sleep(Duration::from_secs(1)).await;
        let nominated = || pod(&world, "large")["status"]["nominatedNodeName"].clone();
        assert_eq!(nominated(), "n0", "1.{minor}: nothing had it tried");
        create_node(&world, 1);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(nominated(), "n0", "1.{minor}: a closed node is no news");
        open_nodes(&world, ["n0"]);
        sleep(Duration::from_secs(5)).await;
        assert!(nominated().is_null(), "1.{minor}: {}", nominated());
    }
}

/// A pod is tried with all that are nominated to its node as if they ran there, in the counts of zones, too.
#[tokio::test(start_paused = true)]
async fn pods_that_must_spread_shut_each_other_out_of_the_node_they_are_nominated_to() {
    for (nominated, on_plan) in [(3, 3), (6, 0)] {
        let world = world(36);
        for number in 0..6 {
            create_spread_pod(&world, &format!("p{number}"));
        }
        // Three zones with two nodes each; three pods are nominated to the first of each, the others come after them.
        for number in 0..6 {
            create_zonal_node(&world, number, &format!("z{}", number % 3));
        }
        sleep(Duration::from_secs(1)).await;
        for number in 0..nominated {
            nominate(&world, &format!("p{number}"), &format!("n{}", number % 3));
        }
        open_nodes(&world, ["n0", "n1", "n2", "n3", "n4", "n5"]);
        sleep(Duration::from_secs(5)).await;
        let place = |number: usize| pod(&world, &format!("p{number}"))["spec"]["nodeName"].clone();
        assert!((0..6).all(|number| place(number).is_string()));
        let first = (0..3).filter(|&number| place(number) == format!("n{number}"));
        assert_eq!(first.count(), on_plan, "of {nominated} nominated");
    }
}
