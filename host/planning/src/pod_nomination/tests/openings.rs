//! When a node opens, and what it is held for before.

use super::trades::{closed, opening, placed};
use super::*;
use crate::pod_nomination::{
    ClosedNode, Following, HoldReason, NodeOpening, OpeningContext, OpeningTerms,
};

/// Pods that wait for no node in particular; nodes given as events.
fn world(nodes: impl IntoIterator<Item = Event>) -> Snapshot {
    let pods = [pod("a", "1", false), pod("b", "2", false)].into_iter();
    let pods = pods.map(|pod| Event::applied::<v1::Pod>(Arc::new(typed(pod))));
    let mut cluster = Cluster::new();
    for event in nodes.into_iter().chain(pods).collect::<Vec<_>>() {
        cluster.apply(at(OPENED), event).unwrap();
    }
    cluster.snapshot()
}

struct OpeningCase {
    name: &'static str,
    snapshot: Snapshot,
    /// Seconds, as all times here.
    ready_at: Option<i64>,
    is_up: bool,
    nominates_pods: bool,
    opens_at: i64,
    now: i64,
    expected: NodeOpening,
}

/// A node that is ready at 100 among others of its plan, looked at five seconds later.
fn case(name: &'static str, snapshot: &Snapshot, expected: NodeOpening) -> OpeningCase {
    OpeningCase {
        name,
        snapshot: snapshot.clone(),
        ready_at: Some(OPENED),
        is_up: true,
        nominates_pods: true,
        opens_at: 0,
        now: 105,
        expected,
    }
}

fn check(cases: Vec<OpeningCase>) {
    for it in cases {
        let node = ClosedNode {
            claim: "c1",
            ready_at: it.ready_at.map(at),
            created_at: None,
            is_up: it.is_up,
        };
        let terms = OpeningTerms {
            holds_nodes_closed: true,
            nominates_pods: it.nominates_pods,
        };
        let now = at(it.now);
        let Following { kept_off, .. } = following(&it.snapshot, PlaceTrade::Nobody, now);
        let among = OpeningContext {
            snapshot: &it.snapshot,
            shut_out: &shut_out(&it.snapshot, &kept_off, now),
            opens_at: at(it.opens_at),
        };
        assert_eq!(terms.decide(among, node, now), it.expected, "{}", it.name);
    }
}

#[test]
fn nodes_that_are_ready_open_at_one_moment() {
    let alone = world(closed(1, "a"));
    let pair = world(closed(1, "a").into_iter().chain(closed(2, "a")));
    let together = NodeOpening::Held(HoldReason::OpensWithOthers);
    check(vec![
        case("alone", &alone, NodeOpening::OpensAlone(at(105))),
        case("two", &pair, NodeOpening::Appointed(at(106))),
        OpeningCase {
            opens_at: 106,
            ..case("before the moment", &pair, together)
        },
        OpeningCase {
            opens_at: 106,
            now: 106,
            ..case("at the moment", &pair, NodeOpening::Opens)
        },
        OpeningCase {
            ready_at: None,
            ..case("ready since never", &pair, NodeOpening::OpensAlone(at(105)))
        },
        OpeningCase {
            ready_at: Some(110),
            ..case("a clock ahead", &pair, NodeOpening::OpensAlone(at(105)))
        },
    ]);
}

#[test]
fn a_node_waits_for_others_of_its_plan_where_pods_are_not_told() {
    let coming = world(closed(1, "a").into_iter().chain(opened_as("2", false)));
    let held = NodeOpening::Held(HoldReason::OthersAreComing);
    let untold = |now, expected| OpeningCase {
        nominates_pods: false,
        now,
        ..case("untold", &coming, expected)
    };
    check(vec![
        untold(105, held),
        untold(111, held),
        untold(112, NodeOpening::OpensAlone(at(112))),
        case("told", &coming, NodeOpening::OpensAlone(at(105))),
    ]);
}

#[test]
fn a_node_waits_for_those_whose_pods_could_take_the_room_of_pods_that_are_shut_out() {
    // The second of two is shut out, as there is none in the other zones; their nodes take no pods of ours.
    let nodes = || {
        let nodes = closed(1, "a").into_iter().chain(opened_as("2", false));
        nodes.chain(["b", "c"].map(elsewhere))
    };
    let spread = [pod("a", "1", true), pod("b", "1", true)];
    let beside = |cpu: &str, selector: Value| {
        let mut pod = pod("c", cpu, false);
        pod["spec"]["nodeSelector"] = selector;
        placed(nodes(), &spread, &[pod])
    };
    let rivals = beside("2", json!({}));
    let others = beside("2", json!({"topology.kubernetes.io/zone": "b"}));
    let greater = beside("5", json!({}));
    let told_at_once = placed(nodes(), &spread[..1], &[pod("c", "2", false)]);
    let ready = opening("a", &spread, &[pod("c", "2", false)]);
    let held = NodeOpening::Held(HoldReason::OthersAreComing);
    let opens = NodeOpening::OpensAlone(at(105));
    check(vec![
        case("rivals", &rivals, held),
        OpeningCase {
            opens_at: 104,
            ..case("rivals, and others open", &rivals, held)
        },
        OpeningCase {
            now: 112,
            ..case(
                "rivals that take long",
                &rivals,
                NodeOpening::OpensAlone(at(112)),
            )
        },
        case("pods that must go elsewhere", &others, opens),
        case("a pod that has no room here", &greater, opens),
        case("a pod that is told at once", &told_at_once, opens),
        case(
            "a rival's node is ready",
            &ready,
            NodeOpening::Appointed(at(106)),
        ),
    ]);
}

#[test]
fn pods_are_not_told_of_a_node_that_is_not_up_yet() {
    let pods = [pod("a", "1", false), pod("b", "2", false)];
    let placed = opening("a", &pods, &[]);
    let starting = |now, expected| OpeningCase {
        is_up: false,
        now,
        ..case("starting", &placed, expected)
    };
    check(vec![
        starting(105, NodeOpening::TooEarly(HoldReason::NotUpYet)),
        starting(111, NodeOpening::TooEarly(HoldReason::NotUpYet)),
        starting(112, NodeOpening::Appointed(at(113))),
        case("up", &placed, NodeOpening::Appointed(at(106))),
    ]);
}

#[test]
fn where_nodes_are_not_held_closed_they_open() {
    let terms = OpeningTerms {
        holds_nodes_closed: false,
        nominates_pods: true,
    };
    let node = ClosedNode {
        claim: "c1",
        ready_at: Some(at(OPENED)),
        created_at: None,
        is_up: false,
    };
    let pair = world(closed(1, "a").into_iter().chain(closed(2, "a")));
    let among = OpeningContext {
        snapshot: &pair,
        shut_out: &BTreeSet::new(),
        opens_at: at(0),
    };
    assert_eq!(terms.decide(among, node, at(105)), NodeOpening::Opens);
}
