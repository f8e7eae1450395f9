//! Which pods trade places before their nodes open, and which nodes open together.

use std::collections::BTreeMap;

use super::*;
use crate::pod_nomination::opens_with_others;

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
    let nodes = [closed(1, "a"), closed(2, zone)];
    placed(nodes.into_iter().flatten(), first, second)
}

/// Pods that were placed on the first and on the second of these nodes.
pub(super) fn placed(
    nodes: impl IntoIterator<Item = Event>,
    first: &[Value],
    second: &[Value],
) -> Snapshot {
    let first = first.iter().map(|it| ("c1", it));
    let second = second.iter().map(|it| ("c2", it));
    waiting(nodes, first.chain(second)).snapshot()
}

/// Pods, as the scheduler queues them, each with the claim that it was placed on.
fn waiting<'a>(
    nodes: impl IntoIterator<Item = Event>,
    pods: impl IntoIterator<Item = (&'a str, &'a Value)>,
) -> Cluster {
    let mut cluster = Cluster::new();
    let mut events: Vec<Event> = nodes.into_iter().collect();
    for (version, (claim, pod)) in (1..).zip(pods) {
        let mut pod = pod.clone();
        pod["metadata"]["resourceVersion"] = version.to_string().into();
        let key = PodKey::new("default", pod["metadata"]["name"].as_str().unwrap());
        events.push(Event::applied::<v1::Pod>(Arc::new(typed(pod))));
        events.push(Event::Placed {
            node: NodeRef::claim(claim),
            pods: vec![key],
        });
    }
    for event in events {
        cluster.apply(at(OPENED), event).unwrap();
    }
    cluster
}

/// Four of a kind that spreads over three zones, two of them placed on one node, and a node in `zone` with others.
fn spreading(zone: &str, others: &[Value]) -> Cluster {
    let nodes = [(1, "a"), (2, zone), (3, "b"), (4, "c")];
    let nodes = nodes.into_iter().flat_map(|(it, zone)| closed(it, zone));
    let of_kind = ["first", "third", "fourth", "second"].map(|it| pod(it, "2", true));
    let of_kind = ["c1", "c3", "c4", "c1"].into_iter().zip(&of_kind);
    waiting(nodes, of_kind.chain(others.iter().map(|it| ("c2", it))))
}

fn trades(snapshot: &Snapshot) -> BTreeMap<NodeRef, Vec<PodKey>> {
    following(snapshot, PlaceTrade::BeforeOpening, at(OPENED)).moved
}

fn told<'a>(snapshot: &'a Snapshot, claim: &str) -> Vec<&'a str> {
    let out_of_turn = following(snapshot, PlaceTrade::Nobody, at(OPENED)).out_of_turn;
    let node = snapshot.node_of_claim(claim).unwrap();
    let told = nominations(snapshot, node, &out_of_turn).into_iter();
    told.map(|it| it.key.name.as_str()).collect()
}

#[test]
fn of_equal_pods_that_must_spread_the_second_goes_where_it_can_be_told() {
    let plain = |name: &str, cpu: &str| pod(name, cpu, false);
    // What is planned for the other node and its zone, and who moves where.
    let cases = [
        ("there is room", "a", vec![plain("p", "1")], "c2: second"),
        (
            "one comes back",
            "a",
            vec![plain("p", "1600m"), plain("q", "1500m")],
            "c1: p, c2: second",
        ),
        (
            "two come back",
            "a",
            ["p", "q", "r", "s"].map(|it| plain(it, "1")).to_vec(),
            "c1: p q, c2: second",
        ),
        (
            "none that comes back has room, so it goes to another zone",
            "a",
            vec![plain("p", "3")],
            "c4: second",
        ),
        (
            "another of its kind is there",
            "a",
            vec![pod("fifth", "2", true), plain("p", "1")],
            "c4: second",
        ),
        (
            "it is in another zone",
            "b",
            vec![plain("p", "1")],
            "c2: second",
        ),
        (
            "who is there keeps it away",
            "a",
            vec![away_from("2", plain("p", "1"))],
            "c4: second",
        ),
        (
            "who is there keeps others away",
            "a",
            vec![away_from("web", plain("p", "1"))],
            "c2: second",
        ),
    ];
    for (case, zone, others, expected) in cases {
        let trades = trades(&spreading(zone, &others).snapshot()).into_iter();
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
    let others = [pod("p", "1600m", false), pod("q", "1500m", false)];
    let mut cluster = spreading("a", &others);
    let told_of_all =
        |snapshot: &Snapshot| ["c1", "c2", "c3", "c4"].map(|it| told(snapshot, it).len());
    let before = cluster.snapshot();
    assert_eq!(told_of_all(&before), [1, 2, 1, 1]);
    for (node, pods) in trades(&before) {
        let placed = Event::Placed { node, pods };
        cluster.apply(at(OPENED), placed).unwrap();
    }
    assert_eq!(told_of_all(&cluster.snapshot()), [2, 2, 1, 1]);
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
    let others = [pod("p", "1", false)];
    let nodes = [(1, "a"), (2, "b"), (3, "c")].map(|(it, zone)| closed(it, zone));
    let snapshot = placed(nodes.into_iter().flatten(), &pods, &others);
    assert_eq!(told(&snapshot, "c1"), ["large"]);
    assert_eq!(
        trades(&snapshot)[&NodeRef::claim("c2")],
        [PodKey::new("default", "small")]
    );
}
