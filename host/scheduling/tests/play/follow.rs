//! Who comes to the node that he is told of, and who trades places so that more do.

use std::collections::{BTreeMap, BTreeSet};

use scheduling::play::{Followed, follow};
use serde_json::{Value, json};

use super::model::World;

/// Must spread over zones, with all of the shop.
fn spread() -> Value {
    spread_over("topology.kubernetes.io/zone")
}

fn spread_over(key: &str) -> Value {
    json!({"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]})
}

/// Of another group, which spreads over zones, too.
fn of_the_stock() -> Value {
    let labels = json!({"app": "stock"});
    let mut spread = spread();
    spread["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] = labels.clone();
    spread["labels"] = labels;
    spread
}

/// Away from all of the shop.
fn alone() -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
    }]}}})
}

struct Case {
    name: &'static str,
    /// CPUs and zone of each node.
    nodes: &'static [(i64, &'static str)],
    /// What each pod asks for, in CPUs, what else it is, and its node.
    pods: Vec<(&'static str, Value, usize)>,
    /// Who moves where, where nodes may trade.
    moved: &'static [(usize, usize)],
    /// Who is kept off where none may.
    kept_off: &'static [usize],
    /// Who of them is not told.
    out_of_turn: &'static [usize],
}

fn looked(case: &Case, trading: &BTreeSet<usize>) -> Followed {
    let names = ["n0", "n1", "n2", "n3"];
    let nodes = case.nodes.iter().zip(names);
    let nodes: Vec<_> = nodes
        .map(|((cpus, zone), name)| (name, *cpus, 64, *zone))
        .collect();
    let mut world = World::new(&nodes);
    let mut places = BTreeMap::new();
    for (at, (cpu, more, node)) in case.pods.iter().enumerate() {
        world = world.pod(&format!("p{at}"), cpu, "1Gi", more.clone());
        places.insert(at, *node);
    }
    follow(&world.problem, &places, trading)
}

fn over_zones() -> Vec<Case> {
    let plain = || json!({});
    let zones = &[(4, "a"), (4, "a"), (4, "b"), (4, "c")];
    vec![
        Case {
            name: "one in each zone",
            nodes: zones,
            pods: vec![("1", spread(), 0), ("1", spread(), 2), ("1", spread(), 3)],
            moved: &[],
            kept_off: &[],
            out_of_turn: &[],
        },
        Case {
            name: "two of one node: the first is told, the other goes where there is room",
            nodes: zones,
            pods: vec![
                ("1", spread(), 0),
                ("1", spread(), 2),
                ("1", spread(), 3),
                ("1", spread(), 0),
            ],
            moved: &[(3, 1)],
            kept_off: &[3],
            out_of_turn: &[3],
        },
        Case {
            name: "no node has room for one more, and an equal one would have to wait in its stead",
            nodes: &[(2, "a"), (1, "b"), (1, "c")],
            pods: vec![
                ("1", spread(), 0),
                ("1", spread(), 0),
                ("1", spread(), 1),
                ("1", spread(), 2),
            ],
            moved: &[],
            kept_off: &[1],
            out_of_turn: &[1],
        },
        Case {
            name: "one of another group comes back, as it stays in its zone",
            nodes: &[(2, "a"), (1, "a"), (1, "b"), (1, "c")],
            pods: vec![
                ("1", spread(), 0),
                ("1", spread(), 2),
                ("1", spread(), 3),
                ("1", spread(), 0),
                ("1", of_the_stock(), 1),
            ],
            moved: &[(3, 1), (4, 0)],
            kept_off: &[3],
            out_of_turn: &[3],
        },
        Case {
            name: "no other zone has one",
            nodes: &[(4, "a"), (4, "a"), (4, "b")],
            pods: vec![("1", spread(), 0), ("1", spread(), 1)],
            moved: &[(1, 2)],
            kept_off: &[1],
            out_of_turn: &[],
        },
        Case {
            name: "who came before keeps it off, whatever that one asks for",
            nodes: &[(4, "a"), (4, "b"), (4, "c")],
            pods: vec![("1", plain(), 0), ("1", plain(), 0), ("1", spread(), 0)],
            moved: &[(2, 1)],
            kept_off: &[2],
            out_of_turn: &[],
        },
    ]
}

fn over_nodes() -> Vec<Case> {
    let plain = || json!({});
    vec![
        Case {
            name: "full nodes exchange as much as there need be",
            nodes: &[(4, "a"), (3, "b")],
            pods: vec![
                ("1", plain(), 0),
                ("1", plain(), 0),
                ("2", spread(), 0),
                ("1500m", plain(), 1),
                ("1500m", plain(), 1),
            ],
            moved: &[],
            kept_off: &[2],
            out_of_turn: &[],
        },
        Case {
            name: "over hosts",
            nodes: &[(4, "a"), (4, "a")],
            pods: vec![
                ("1", plain(), 0),
                ("1", spread_over("kubernetes.io/hostname"), 0),
            ],
            moved: &[(1, 1)],
            kept_off: &[1],
            out_of_turn: &[],
        },
        Case {
            name: "one that is told of the node as well wants no company",
            nodes: &[(4, "a"), (4, "a")],
            pods: vec![("1", plain(), 0), ("1", alone(), 0)],
            moved: &[(0, 1)],
            kept_off: &[0],
            out_of_turn: &[],
        },
    ]
}

#[test]
fn those_who_are_kept_off_trade_places() {
    for case in over_zones().into_iter().chain(over_nodes()) {
        let all: BTreeSet<usize> = (0..case.nodes.len()).collect();
        let still = looked(&case, &BTreeSet::new());
        let kept_off: Vec<usize> = still.kept_off.into_iter().collect();
        assert_eq!(kept_off, case.kept_off, "{}", case.name);
        let out_of_turn: Vec<usize> = still.out_of_turn.into_iter().collect();
        assert_eq!(out_of_turn, case.out_of_turn, "{}", case.name);
        assert!(still.moved.is_empty(), "{}", case.name);
        let traded = looked(&case, &all);
        let moved: Vec<(usize, usize)> = traded.moved.into_iter().collect();
        assert_eq!(moved, case.moved, "{}", case.name);
        let is_helped = !case.moved.is_empty() || case.kept_off.is_empty();
        assert_eq!(traded.kept_off.is_empty(), is_helped, "{}", case.name);
    }
}
