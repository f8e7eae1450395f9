//! Where clusters end up, and that they do not go in circles on the way.

use std::fmt::Write;
use std::sync::Arc;

use planning::provisioning::{base_problem, types_by_pool, usage};
use scheduling::pod::Pod;
use scheduling::problem::ReservedMode;
use scheduling::solve;

use super::*;
use crate::candidate::{Candidates, list_price};
use crate::command::{Cost, Proposal};
use crate::end_state::price_per_hour;

/// Nodes that were full once: of every eight pods of a node, some are left.
fn thinned(nodes: u32, left: u32) -> String {
    let mut text = String::new();
    let kinds = ["small", "medium", "large"];
    for number in 0..nodes {
        let kind = kinds[(number % 3) as usize];
        let zone = ["a", "b"][(number % 2) as usize];
        writeln!(text, "node n{number:03} {kind} on-demand {zone}").unwrap();
        let room = [1900, 3900, 7900][(number % 3) as usize];
        for pod in 0..(number * 7 + left) % (left + 1) {
            let cpu = room * (1 + (number + pod) % 3) / 10;
            writeln!(text, "pod p{number:03}-{pod} n{number:03} {cpu}").unwrap();
        }
    }
    text
}

fn afresh(world: &World) -> f64 {
    let snapshot = world.cluster.snapshot();
    let options = Options {
        now: now(),
        ..Options::default()
    };
    let usage = usage(&snapshot, &types_by_pool(&world.pools));
    let mut problem = base_problem(&snapshot, &world.pools, usage, options);
    problem.nodes.clear();
    for pool in &mut problem.pools {
        pool.in_use = apis::resources::Resources::new();
    }
    let unbound = snapshot.pods().map(|pod| {
        std::sync::Arc::new(Pod {
            node_name: None,
            awaits_node: true,
            ..(**pod).clone()
        })
    });
    problem.pods = unbound.collect();
    let solution = solve(&problem, &PriceRank, &Interrupt::never());
    assert!(solution.pod_errors.is_empty(), "{:?}", solution.pod_errors);
    solution.price_per_hour()
}

#[test]
fn a_settled_cluster_costs_no_more_than_five_percent_above_a_fresh_one() {
    for (nodes, left) in [(12, 3), (30, 2), (60, 4), (90, 3)] {
        let mut world = World::new(&thinned(nodes, left));
        let before = price_per_hour(&world.cluster.snapshot(), &world.types);
        let fresh = afresh(&world);
        let pods = world.cluster.snapshot().pods().len();
        let settled = world.settle(natively(), 200);
        let snapshot = world.cluster.snapshot();
        let after = price_per_hour(&snapshot, &world.types);
        let last = settled.loops.last().unwrap();
        assert!(last.commands.is_empty(), "{nodes} nodes never settle");
        assert!(
            after <= fresh * 1.05 + 1e-9,
            "{nodes} nodes: {before} before, {after} after {} loops, {fresh} afresh",
            settled.loops.len()
        );
        assert_eq!(snapshot.pods().len(), pods, "no pod is lost");
        let homeless = snapshot.pods().filter(|pod| pod.node_name.is_none());
        assert_eq!(homeless.count(), 0, "every pod runs");
        for decision in &settled.loops {
            let mut names: Vec<&String> = decision.outcomes.iter().map(|it| &it.node).collect();
            let all = names.len();
            names.dedup();
            assert_eq!(names.len(), all, "one outcome a node");
        }
    }
}

/// A cluster, what its loops do until they find nothing, and where its pods run then.
const CARRIED_OUT: [(&str, &str, &str); 5] = [
    // What holds a pod does not keep it on a sick node.
    (
        "pool web policy=WhenEmpty
        node n1 small on-demand a sick=DiskFailed:True:x:11
        pod p n1 900 do-not-disrupt=true
        node n2 small on-demand a
        pod q n2 900",
        "repair: n1",
        "p q on n2",
    ),
    // Other methods may not touch such a node.
    (
        "pool web policy=WhenEmpty
        node n1 small on-demand a do-not-disrupt sick=Ready:False:x:11
        pod p n1 1900",
        "repair: n1 -> small",
        "p on web-settled-00001",
    ),
    (
        "pool web policy=WhenEmpty
        node n1 small on-demand a sick=DevicesReady:False:Hung:11
        pod p n1 1900",
        "repair: n1 reboots, repair: n1 reboots, repair: n1 -> small",
        "p on web-settled-00001",
    ),
    (
        "reservation cr-1 small a 0
        pool web capacity=reserved
        node n1 small reserved a drifted reservation=cr-1
        pod p n1 1500",
        "drift: n1 first",
        "p on web-settled-00001",
    ),
    (
        "reservation cr-1 small a 0
        pool web replicas=1 capacity=reserved
        node n1 small reserved a drifted reservation=cr-1
        node n2 large on-demand a pool=other
        pool other policy=WhenEmpty
        pod p n2 1500",
        "static drift: n1 first",
        "p on n2, none on web-settled-00001",
    ),
];

#[test]
fn commands_are_carried_out_as_they_were_meant() {
    for (text, expected, runs) in CARRIED_OUT {
        let mut world = World::new(text);
        world.gates.terminate_first_drift = true;
        world.repair = Some(Arc::new(world::repair_policies()));
        let settled = world.settle(natively(), 9);
        let commands = settled.loops.iter().map(told).filter(|it| !it.is_empty());
        let commands: Vec<String> = commands.collect();
        assert_eq!(commands.join(", "), expected, "{text}");
        let snapshot = world.cluster.snapshot();
        let mut found: Vec<String> = Vec::new();
        for node in snapshot.nodes() {
            let pods: Vec<&str> = snapshot
                .bound(node)
                .pods()
                .map(|it| it.key.name.as_str())
                .collect();
            let pods = if pods.is_empty() {
                "none".to_owned()
            } else {
                pods.join(" ")
            };
            found.push(format!("{pods} on {}", node.name()));
            let price = list_price(&world.types, node);
            assert!(price.is_some(), "{} has no price: {text}", node.name());
        }
        assert_eq!(found.join(", "), runs, "{text}");
    }
}

#[test]
fn a_node_goes_first_only_where_its_slot_may_be_bought_again() {
    let text = "reservation cr-1 small a 0
        pool web capacity=reserved
        node n1 small reserved a drifted reservation=cr-1
        pod p n1 1500";
    for (reserved, expected) in [
        (ReservedMode::Fallback, "drift: n1 first"),
        (ReservedMode::Strict, "drift: n1 first"),
        (ReservedMode::Off, ""),
    ] {
        let mut world = World::new(text);
        world.gates.terminate_first_drift = true;
        world.reserved = reserved;
        assert_eq!(told(&world.decide()), expected, "{reserved:?}");
    }
}

#[test]
fn one_dear_node_does_not_come_where_several_cheap_ones_do() {
    // Every pod needs most of a large node; a huge one takes them all, for less than today and more than six large
    // ones.
    let mut types = world::catalogue().to_vec();
    types.push(world::instance_type("huge", 32, 4.0));
    types.push(world::instance_type("old", 8, 1.5));
    let mut text = String::new();
    for number in 0..6 {
        writeln!(text, "node n{number} old on-demand a").unwrap();
        writeln!(text, "pod p{number} n{number} 4200").unwrap();
    }
    let decision = World::with_types(&text, &types.into()).decide();
    let command = &decision.commands[0];
    let comes: Vec<&str> = command
        .replacements()
        .iter()
        .map(|it| it.best.instance_type.as_str())
        .collect();
    assert_eq!(command.candidates.len(), 6);
    assert_eq!(comes, ["large"; 6]);
    assert!((command.after.price_per_hour - 6.0 * 0.4).abs() < 1e-9);
}

#[test]
fn a_move_buys_fifty_nodes_at_most() {
    let mut text = String::new();
    for number in 0..70 {
        writeln!(text, "node n{number:02} large on-demand a").unwrap();
        writeln!(text, "pod p{number:02} n{number:02} 1900 apart").unwrap();
    }
    let decision = World::new(&text).decide();
    let bought = decision.commands[0].replacements().len();
    assert!((2..=50).contains(&bought), "{bought}");
}

#[test]
fn what_was_replaced_does_not_come_back_within_the_hour() {
    let decision = World::new("node n1 large on-demand a\npod p n1 900").decide();
    let command = &decision.commands[0];
    let mut history = History::default();
    history.note_replacements(command, &["new-claim".to_owned()], now());
    let world = World::new("node new large on-demand a\nnode other large on-demand a");
    let snapshot = world.cluster.snapshot();
    let found = Candidates::find(&snapshot, &world.types, &BTreeSet::new(), now()).candidates;
    let back = |node: &str, instance_type: &str, cost_after_per_hour: f64| {
        let mut it = command.replacements()[0].clone();
        it.best.instance_type = instance_type.to_owned();
        let mut candidates = found.iter();
        Proposal {
            method: Method::SingleNodeConsolidation,
            execution: Execution::ReplaceFirst(vec![it]),
            candidates: vec![candidates.find(|it| it.name() == node).unwrap()],
            destinations: Vec::new(),
            before: Cost::at_list_price(1.0),
            after: Cost::at_list_price(cost_after_per_hour),
        }
    };
    let hours = |hours: i64| now() + jiff::SignedDuration::from_hours(hours);
    for (instance_type, node, at, cost_after, expected) in [
        ("large", "new", 0, 0.9, true),
        ("large", "new", 2, 0.9, false),
        ("large", "other", 0, 0.9, false),
        ("medium", "new", 0, 0.9, false),
        // The load fell: this gets somewhere and is no circle.
        ("large", "new", 0, 0.5, false),
    ] {
        let proposal = back(node, instance_type, cost_after);
        let found = history.brought_back(&proposal, hours(at));
        assert_eq!(found.is_some(), expected, "{instance_type} {node} {at}");
    }
}

#[test]
fn what_came_by_moves_must_save_more_each_time() {
    let decision = World::new("node n1 large on-demand a\npod p n1 900").decide();
    let mut command = decision.commands[0].clone();
    let mut history = History::default();
    let share = |history: &History, claim: &str, hours: i64| {
        history.share_to_save(&[claim], now() + jiff::SignedDuration::from_hours(hours))
    };
    assert!((share(&history, "n1", 0) - 0.05).abs() < 1e-9);
    for (times, expected) in [(1, 0.1), (2, 0.2), (3, 0.4)] {
        let came = format!("came-{times}");
        history.note_replacements(&command, std::slice::from_ref(&came), now());
        assert!((share(&history, &came, 0) - expected).abs() < 1e-9);
        assert!((share(&history, &came, 2) - 0.05).abs() < 1e-9, "forgotten");
        command.candidates[0].claim = came;
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for text in [
        thinned(40, 4),
        thinned(25, 2),
        "node n1 nano on-demand a\npod p n1 900".into(),
    ] {
        let mut world = World::new(&text);
        let alone = world.decide();
        for threads in [2, 3, 64] {
            world.threads = threads;
            let together = world.decide();
            assert_eq!(together.commands, alone.commands, "{threads} threads");
            assert_eq!(together.outcomes, alone.outcomes, "{threads} threads");
        }
    }
}
