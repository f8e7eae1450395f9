//! Moves that wait, and how long: what a loop keeps of them for the next.

use std::fmt::Write;

use apis::{NodeClaim, ObjectKey};

use super::*;

/// A loop so many seconds after noon, which leaves its memory to the next.
fn look(world: &mut World, seconds: i64, interrupt: &Interrupt) -> Decision {
    world.now = now() + jiff::SignedDuration::from_secs(seconds);
    let decision = world.decide_until(natively(), interrupt);
    world.memory = decision.memory.clone();
    decision
}

/// Of a pool of which one node may go at a time: so many small nodes, each of which could be a nano, beside full ones.
fn small(nodes: u32, full: u32) -> String {
    let mut text = "pool web budget=1\n".to_owned();
    for it in 0..nodes {
        writeln!(text, "node n{it:02} small on-demand a").unwrap();
        writeln!(text, "pod p{it:02} n{it:02} 900 apart").unwrap();
    }
    for it in 0..full {
        writeln!(text, "node f{it:02} large on-demand a").unwrap();
        writeln!(text, "pod q{it:02} f{it:02} 7900 app=full").unwrap();
    }
    text
}

fn patient(world: World) -> World {
    World {
        gates: Gates {
            puts_moves_off: true,
            ..Gates::default()
        },
        ..world
    }
}

#[test]
fn a_scan_that_was_cut_off_does_not_have_moves_wait_anew() {
    let mut world = patient(World::new(&small(1, 10)));
    let (never, tripped) = (Interrupt::never(), Interrupt::never());
    tripped.trip();
    let first = look(&mut world, 0, &never);
    assert_eq!(outcome(&first, "n00"), "node-gain-too-small");
    // Something happens, so that it looks.
    world.apply(Event::OfferingsChanged);
    let cut_off = look(&mut world, 1800, &tripped);
    assert_eq!(outcome(&cut_off, "n00"), "node-not-reached");
    let after_an_hour = look(&mut world, 3660, &never);
    assert_eq!(told(&after_an_hour), "single: n00 -> nano");
}

#[test]
fn many_small_moves_wait_at_the_same_time() {
    let mut world = patient(World::new(&small(40, 20)));
    let never = Interrupt::never();
    assert_eq!(told(&look(&mut world, 0, &never)), "");
    for (seconds, expected) in [
        (1800, ""),
        (3660, "single: n00 -> nano"),
        (3670, "single: n01 -> nano"),
        (3680, "single: n02 -> nano"),
    ] {
        let decision = look(&mut world, seconds, &never);
        assert_eq!(told(&decision), expected, "after {seconds} s");
        for node in decision.commands.iter().flat_map(|it| &it.candidates) {
            let pod = node.node.replace('n', "p");
            world.line(&format!("gone pod {pod}"), &world::catalogue());
            world.line(&format!("gone node {}", node.node), &world::catalogue());
            let claim = ObjectKey::cluster(node.claim.as_str());
            world.apply(Event::deleted::<NodeClaim>(claim));
        }
    }
}

/// Eighty small moves are more than one scan looks for; behind them is a node whose pods find room on the others, with
/// which a large part of the bill would go.
fn with_a_large_gain() -> World {
    let mut types = world::catalogue().to_vec();
    types.push(instance_type("huge", 32, 1.0));
    let mut text = small(80, 20);
    text.push_str("node z huge on-demand a\n");
    for it in 0..20 {
        writeln!(text, "pod z{it:02} z 160 app=other").unwrap();
    }
    patient(World::with_types(&text, &types.into()))
}

#[test]
fn a_large_gain_has_its_turn_behind_many_small_ones() {
    let (mut world, never) = (with_a_large_gain(), Interrupt::never());
    let first = look(&mut world, 0, &never);
    assert_eq!(told(&first), "");
    assert_eq!(outcome(&first, "z"), "node-not-reached");
    let second = look(&mut world, 10, &never);
    assert_eq!(told(&second), "single: z");
}

#[test]
fn once_every_small_move_was_tried_nothing_is_looked_at_again_until_one_pays() {
    let mut world = patient(World::new(&small(80, 20)));
    let never = Interrupt::never();
    let untried = |it: &Decision| {
        let outcomes = it.outcomes.iter();
        let untried = outcomes.filter(|it| it.outcome == OutcomeId::NodeNotReached);
        untried.count()
    };
    let decision = look(&mut world, 0, &never);
    assert_eq!((told(&decision).as_str(), untried(&decision)), ("", 4));
    let decision = look(&mut world, 10, &never);
    assert_eq!((told(&decision).as_str(), untried(&decision)), ("", 0));
    let decision = look(&mut world, 20, &never);
    assert!(decision.scored.is_empty(), "the findings are repeated");
    assert_eq!(untried(&decision), 0);
    assert_eq!(told(&look(&mut world, 3000, &never)), "");
    let paid = look(&mut world, 3660, &never);
    assert_eq!(paid.commands.len(), 1);
}

#[test]
fn a_scan_that_never_gets_far_comes_to_every_node() {
    let mut world = patient(World::new(&small(80, 20)));
    world.memory.unseen = (0..80).map(|it| format!("n{it:02}-claim")).collect();
    let tripped = Interrupt::never();
    tripped.trip();
    // Of the nodes that are left those that were left before go first.
    world.memory.unseen.remove("n00-claim");
    let decision = look(&mut world, 0, &tripped);
    assert!(!decision.memory.unseen.contains("n00-claim"));
    assert!(decision.memory.unseen.contains("n79-claim"));
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
