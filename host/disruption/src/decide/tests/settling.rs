//! Where clusters end up, and that they do not go in circles on the way.

use std::fmt::Write;
use std::sync::Arc;

use planning::provisioning::base_problem;
use scheduling::pod::Pod;
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
    let mut problem = base_problem(&snapshot, &world.pools, options);
    problem.nodes.clear();
    for pool in &mut problem.pools {
        pool.in_use = apis::resources::Resources::new();
    }
    let unbound = snapshot.pods().map(|pod| {
        std::sync::Arc::new(Pod {
            node_name: None,
            is_unschedulable: true,
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

#[test]
fn a_scan_that_was_cut_off_goes_on_where_it_stopped() {
    let mut text = String::new();
    for it in 0..40 {
        writeln!(text, "node n{it:02} nano on-demand a").unwrap();
        writeln!(text, "pod p{it:02} n{it:02} 900").unwrap();
    }
    let mut world = World::new(&text);
    let stopped = Interrupt::never();
    stopped.trip();
    let first = world.decide_until(natively(), &stopped);
    assert!(first.is_interrupted);
    assert_eq!(first.cut_short, Some(Method::MultiNodeConsolidation));
    assert_eq!(first.outcomes.len(), 40);
    let unseen = first.memory.unseen.len();
    assert!(unseen > 0, "{:?}", first.outcomes);
    world.memory = first.memory;
    let second = world.decide();
    assert_eq!(second.cut_short, None);
    assert!(second.memory.unseen.is_empty());
    let tried = second.outcomes.iter();
    let tried = tried.filter(|it| it.outcome == OutcomeId::NodeNoCheaperReplacement);
    assert_eq!(tried.count(), 40);
}

#[test]
fn what_ends_before_consolidation_cuts_none_short() {
    let world = World::new("node n1 small on-demand a");
    let stopped = Interrupt::never();
    stopped.trip();
    let decision = world.decide_until(natively(), &stopped);
    let methods: Vec<Method> = decision.commands.iter().map(|it| it.method).collect();
    assert_eq!(methods, [Method::Emptiness]);
    assert!(decision.is_interrupted);
    assert_eq!(decision.cut_short, None);
}

#[test]
fn what_saves_next_to_nothing_of_the_bill_waits_until_it_has_paid() {
    // It saves 0.05 an hour and disturbs one pod and a node, worth 0.02: that is less than the hour it must wait.
    let few = "node n1 small on-demand a\npod p n1 900";
    let full = |number| format!("\nnode f{number} large on-demand a\npod q{number} f{number} 7900");
    let many = format!("{few}{}", (0..10).map(full).collect::<String>());
    for (lines, waits, minutes, expected) in [
        (few, true, 0, 1),
        (&many, false, 0, 1),
        (&many, true, 0, 0),
        (&many, true, 55, 0),
        (&many, true, 61, 1),
    ] {
        let mut world = World::new(lines);
        world.gates.puts_moves_off = waits;
        let mut look = |minutes: i64| {
            world.now = now() + jiff::SignedDuration::from_mins(minutes);
            let decision = world.decide();
            world.memory = decision.memory.clone();
            decision
        };
        let mut decision = look(0);
        if minutes > 0 {
            assert_eq!(outcome(&decision, "n1"), "node-gain-too-small");
            decision = look(minutes);
        }
        assert_eq!(decision.commands.len(), expected, "{minutes} {waits}");
    }
}

#[test]
fn nodes_beside_a_move_that_is_put_off_are_told_what_keeps_them() {
    // One may go at a time, and each saves next to nothing of the bill.
    let small = |number| {
        format!("\nnode n{number:02} small on-demand a\npod p{number:02} n{number:02} 900")
    };
    let full = |number| format!("\nnode f{number} large on-demand a\npod q{number} f{number} 7900");
    // Of 100 nodes in batches of 16 the first six have more such moves than are looked for.
    for (nodes, untried) in [(3, 0), (80, 4)] {
        let nodes: String = (0..nodes).map(small).collect();
        let full: String = (0..20).map(full).collect();
        let mut world = World::new(&format!("pool web budget=1{nodes}{full}"));
        world.gates.puts_moves_off = true;
        let decision = world.decide();
        assert_eq!(told(&decision), "");
        let small = decision
            .outcomes
            .iter()
            .filter(|it| it.node.starts_with('n'));
        let others: Vec<&str> = small
            .map(|it| it.outcome.name())
            .filter(|it| *it != "node-gain-too-small")
            .collect();
        assert_eq!(others, vec!["node-not-reached"; untried]);
    }
}

/// Nodes with a small pod each, of which the first have pods that came or left just now.
fn thin(nodes: u32, young: u32) -> String {
    let mut text = String::new();
    for number in 0..nodes {
        let flag = if number < young { "young" } else { "" };
        writeln!(text, "node n{number} small on-demand a {flag}").unwrap();
        writeln!(text, "pod p{number} n{number} 100").unwrap();
    }
    text
}

#[test]
fn nodes_that_just_fell_empty_go_before_pods_are_moved() {
    let emptied = "node e1 small on-demand a young\nnode e2 small on-demand a young\n";
    let mut world = World::new(&format!("{}{emptied}", thin(4, 0)));
    world.gates.puts_moves_off = true;
    let decision = world.decide();
    assert!(decision.commands.is_empty());
    assert_eq!(outcome(&decision, "n0"), "node-awaits-others");
    assert_eq!(outcome(&decision, "e1"), "node-not-consolidatable");
}

#[test]
fn who_asks_where_a_cluster_ends_up_is_not_told_to_wait_for_a_burst_to_end() {
    let decision = World::new(&thin(4, 2)).decide();
    assert_ne!(told(&decision), "");
    assert_eq!(decision.memory.unsettled_since, None);
    assert_eq!(decision.next_look_seconds, None);
}

#[test]
fn one_plan_is_made_for_all_nodes_of_a_burst_that_ends() {
    let in_a_minute = now() + jiff::SignedDuration::from_secs(60);
    // Nodes, how many of them are restless, since when that is known, and whether it is waited for.
    let cases = [
        (4, 0, None, false),
        (4, 1, None, false),
        (4, 2, None, true),
        (12, 3, None, false),
        (12, 4, None, true),
        (12, 11, None, true),
        (12, 4, Some(now()), false),
    ];
    for (nodes, young, since, is_awaited) in cases {
        let mut world = World::new(&thin(nodes, young));
        world.gates.puts_moves_off = true;
        world.memory.unsettled_since = since;
        if since.is_some() {
            world.now = in_a_minute;
        }
        let decision = world.decide();
        let case = format!("{young} of {nodes} are restless, known since {since:?}");
        assert_eq!(decision.commands.is_empty(), is_awaited, "{case}");
        let last = outcome(&decision, &format!("n{}", nodes - 1));
        assert_eq!(last == "node-awaits-others", is_awaited, "{case}: {last}");
        if is_awaited {
            assert_eq!(decision.next_look_seconds.unwrap().get(), 3, "{case}");
            assert_eq!(decision.memory.unsettled_since, Some(now()), "{case}");
        }
    }
}
