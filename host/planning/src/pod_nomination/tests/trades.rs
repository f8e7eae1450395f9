//! Which pods trade places before their nodes open, and which nodes open together.

use std::collections::BTreeMap;

use super::*;
use crate::pod_nomination::{opens_with_others, trades};

/// A node of four CPUs that is ready and still closed.
pub(super) fn closed(number: u8, zone: &str) -> [Event; 2] {
    let provider_id = format!("aws:///zone/i-{number}");
    let (claim, node) = (format!("c{number}"), format!("n{number}"));
    let amounts = json!({"cpu": "4", "pods": "10"});
    let labels = json!({"karpenter.sh/nodepool": "default", "topology.kubernetes.io/zone": zone});
    let claim = json!({
        "metadata": {"name": claim, "uid": claim, "creationTimestamp": at(0).to_string(), "labels": labels},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []},
        "status": {"providerID": provider_id, "allocatable": amounts},
    });
    let node = json!({
        "metadata": {"name": node, "uid": node, "labels": {"topology.kubernetes.io/zone": zone}},
        "spec": {"providerID": provider_id, "taints": [{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    [
        Event::applied::<NodeClaim>(Arc::new(typed(claim))),
        Event::applied::<v1::Node>(Arc::new(typed::<v1::Node>(node))),
    ]
}

/// The pod, which shares its node with none that has the label.
fn away_from(app: &str, mut pod: Value) -> Value {
    pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}},
    }]}});
    pod
}

/// The pods of two nodes that are about to open, the second of them in the zone given.
pub(super) fn opening(zone: &str, first: &[Value], second: &[Value]) -> Snapshot {
    placed([closed(1, "a"), closed(2, zone)], first, second)
}

/// Pods that were placed on the first and on the second of these nodes.
pub(super) fn placed(nodes: [[Event; 2]; 2], first: &[Value], second: &[Value]) -> Snapshot {
    let mut cluster = Cluster::new();
    let mut events: Vec<Event> = nodes.into_iter().flatten().collect();
    let mut version = 0;
    for (claim, pods) in [("c1", first), ("c2", second)] {
        for pod in pods {
            version += 1;
            let mut pod = pod.clone();
            pod["metadata"]["resourceVersion"] = version.to_string().into();
            let key = PodKey::new("default", pod["metadata"]["name"].as_str().unwrap());
            events.push(Event::applied::<v1::Pod>(Arc::new(typed(pod))));
            events.push(Event::Placed {
                node: NodeRef::claim(claim),
                pods: vec![key],
            });
        }
    }
    for event in events {
        cluster.apply(at(OPENED), event).unwrap();
    }
    cluster.snapshot()
}

#[test]
fn of_equal_pods_that_must_spread_the_second_goes_where_it_can_be_told() {
    let twins = [pod("first", "2", true), pod("second", "2", true)];
    let plain = |name: &str, cpu: &str| pod(name, cpu, false);
    // What is planned for the other node and its zone, and who moves where.
    let cases = [
        ("there is room", "a", vec![plain("p", "1")], "c2: second"),
        (
            "one comes back",
            "a",
            vec![plain("p", "2"), plain("q", "1500m")],
            "c1: p, c2: second",
        ),
        (
            "two come back",
            "a",
            ["p", "q", "r", "s"].map(|it| plain(it, "1")).to_vec(),
            "c1: p q, c2: second",
        ),
        (
            "none that comes back has room",
            "a",
            vec![plain("p", "3")],
            "",
        ),
        (
            "another of its kind is there",
            "a",
            vec![pod("third", "2", true), plain("p", "1")],
            "",
        ),
        ("it is in another zone", "b", vec![plain("p", "1")], ""),
        (
            "who is there keeps it away",
            "a",
            vec![away_from("2", plain("p", "1"))],
            "",
        ),
        (
            "who is there keeps others away",
            "a",
            vec![away_from("web", plain("p", "1"))],
            "c2: second",
        ),
    ];
    for (case, zone, others, expected) in cases {
        let trades = trades(&opening(zone, &twins, &others)).into_iter();
        let line = |(claim, pods): (NodeRef, Vec<PodKey>)| {
            let names: Vec<String> = pods.into_iter().map(|it| it.name).collect();
            format!("{claim}: {}", names.join(" "))
        };
        let lines: Vec<String> = trades.map(line).collect();
        assert_eq!(lines.join(", "), expected, "{case}");
    }
}

#[test]
fn those_who_traded_places_are_all_told() {
    let twins = [pod("first", "2", true), pod("second", "2", true)];
    let others = [pod("p", "2", false), pod("q", "1", false)];
    let told = |snapshot: &Snapshot| {
        let of = |claim: &str| nominations(snapshot, snapshot.node_of_claim(claim).unwrap()).len();
        (of("c1"), of("c2"))
    };
    let before = opening("a", &twins, &others);
    assert_eq!(told(&before), (1, 2));
    let mut places: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let moved = trades(&before);
    for (claim, pods) in [("c1", twins), ("c2", others)] {
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            let is_moved = |it: &PodKey| it.name == name;
            let to = moved.iter().find(|(_, pods)| pods.iter().any(is_moved));
            let to = to.map_or(claim, |(claim, _)| claim.name());
            places
                .entry(if to == "c1" { "c1" } else { "c2" })
                .or_default()
                .push(pod);
        }
    }
    assert_eq!(told(&opening("a", &places["c1"], &places["c2"])), (2, 2));
}

#[test]
fn nodes_that_are_ready_and_closed_open_together() {
    let waiting = opening("a", &[pod("p", "1", false)], &[]);
    assert!(opens_with_others(&waiting, "c1"));
    assert!(!opens_with_others(&opening("a", &[], &[]), "c1"));
    let mut cluster = Cluster::new();
    let pod = Event::applied::<v1::Pod>(Arc::new(typed(pod("p", "1", false))));
    for event in closed(1, "a")
        .into_iter()
        .chain(opened_as("2", true))
        .chain([pod])
    {
        cluster.apply(at(OPENED), event).unwrap();
    }
    let snapshot = cluster.snapshot();
    assert!(!opens_with_others(&snapshot, "c1"), "the other is open");
    assert!(opens_with_others(&snapshot, "c2"));
}

#[test]
fn pods_that_spread_together_are_told_one_at_a_time_whatever_their_size() {
    let of_group = |name: &str, cpu: &str| {
        let mut pod = pod(name, cpu, true);
        pod["metadata"]["labels"] = json!({"app": "web"});
        let spread = &mut pod["spec"]["topologySpreadConstraints"][0];
        spread["labelSelector"] = json!({"matchLabels": {"app": "web"}});
        pod
    };
    let pods = [of_group("large", "2"), of_group("small", "1")];
    let snapshot = opening("a", &pods, &[pod("p", "1", false)]);
    let node = snapshot.node_of_claim("c1").unwrap();
    let told = nominations(&snapshot, node).into_iter();
    let names: Vec<&str> = told.map(|it| it.key.name.as_str()).collect();
    assert_eq!(names, ["large"]);
    assert_eq!(
        trades(&snapshot)[&NodeRef::claim("c2")],
        [PodKey::new("default", "small")]
    );
}
