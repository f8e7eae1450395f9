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

/// Keeps the instance types that moves would bring.
#[derive(Default)]
struct Noting(std::sync::Mutex<BTreeSet<String>>);

impl ConsolidationHook for Noting {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        DefaultConsolidation.order(round)
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let word = |symbol: u32| round.nodes.symbols.get(symbol as usize).cloned();
        let comes = moves.iter().map(|it| word(it.replacement_type));
        let comes = comes.map(Option::unwrap_or_default);
        self.0.lock().unwrap().extend(comes);
        DefaultConsolidation.judge(round, moves)
    }
}

#[test]
fn a_policy_is_told_what_comes_of_a_pool_that_has_no_node() {
    let large = [instance_type("large", 8, 0.4)];
    let mut world = World::with_types("node n1 large on-demand a\npod p n1 900", &large.into());
    world.pool("other", &["weight=10"], &world::catalogue());
    let noting = Noting::default();
    let hooks = PolicyHooks {
        consolidation: &noting,
        ..natively()
    };
    let decision = world.decide_by(hooks);
    let comes = noting.0.into_inner().unwrap();
    assert_eq!(
        comes,
        BTreeSet::from(["nano".to_owned()]),
        "{}",
        told(&decision)
    );
}

/// Lets one node of a pool go in an hour.
struct OneAnHour;

impl BudgetsHook for OneAnHour {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        let mut answer = DeclaredBudgets.allow(round);
        for item in &mut answer.items {
            let activity = round.pools[item.pool as usize].activity;
            let recent = activity[item.reason.index()].recent_hour;
            item.allowed = item.allowed.min(1_u32.saturating_sub(recent));
        }
        answer
    }
}

#[test]
fn a_budget_by_activity_holds_on_the_way_to_where_a_cluster_ends_up() {
    let mut world = World::new("node n1 small on-demand a\nnode n2 small on-demand a");
    let hooks = PolicyHooks {
        budgets: &OneAnHour,
        ..natively()
    };
    let settled = world.settle(hooks, 9);
    let gone = settled.commands().flat_map(|it| &it.candidates);
    assert_eq!(gone.count(), 1);
}

#[test]
fn a_sick_node_that_goes_is_not_told_that_repair_may_not_touch_it() {
    let text = "node n1 small on-demand a do-not-repair sick=DiskFailed:True:x:11";
    for (pods, expected, blocked) in [("", "empty: n1", 0), ("pod p n1 1900", "", 1)] {
        let mut world = World::new(&format!("{text}\n{pods}"));
        world.repair = Some(std::sync::Arc::new(world::repair_policies()));
        let decision = world.decide();
        assert_eq!(told(&decision), expected);
        let of_node = decision.blocked.iter().filter(|it| it.name == "n1");
        assert_eq!(of_node.count(), blocked, "{:?}", decision.blocked);
    }
}
