//! One currency: what the ranking policy prefers stays, what it excludes does not come, and what flips does not move.

use std::collections::{BTreeMap, BTreeSet};

use apis::CapacityType;
use hooks::disruption::ConsolidationHook;
use scheduling::instance_type::Availability;
use scheduling::ranking::{RankAnswer, RankHook, RankRound, Ranking};

use super::*;

/// A row of the table as a policy of these tests looks at it.
struct Row<'a> {
    instance_type: &'a str,
    zone: &'a str,
    is_spot: bool,
    price: f64,
}

/// What a row costs; `None` excludes it.
struct Policy<F>(&'static str, F);

impl<F: Fn(&Row<'_>) -> Option<f64> + Send + Sync> RankHook for Policy<F> {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let table = &round.table;
        let word = |symbol: u32| table.symbols[symbol as usize].as_str();
        let cost = |row: u32| {
            let row = row as usize;
            (self.1)(&Row {
                instance_type: word(table.instance_type[row]),
                zone: word(table.zone[row]),
                is_spot: table.capacity_type[row] == 1,
                price: table.price[row],
            })
        };
        let ranking = |candidates: &Vec<u32>| {
            let costs: Vec<Option<f64>> = candidates.iter().map(|row| cost(*row)).collect();
            let excluded = (0..).zip(&costs).filter(|(_, it)| it.is_none());
            Ranking {
                excluded: excluded.map(|(at, _)| (at, "no".to_owned())).collect(),
                scores: costs.iter().map(|it| it.unwrap_or(9.0)).collect(),
                note: None,
                premium_max: None,
            }
        };
        RankAnswer {
            rankings: round
                .claims
                .iter()
                .map(|it| ranking(&it.candidates))
                .collect(),
            uses: Vec::new(),
        }
    }

    fn identity(&self) -> String {
        self.0.to_owned()
    }
}

fn decided(
    world: &mut World,
    name: &'static str,
    policy: impl Fn(&Row<'_>) -> Option<f64> + Send + Sync,
) -> Decision {
    let rank = Policy(name, policy);
    let hooks = PolicyHooks {
        rank: &rank,
        ..natively()
    };
    let decision = world.decide_by(hooks);
    world.memory = decision.memory.clone();
    decision
}

/// What comes in place of what goes.
fn told(decision: &Decision) -> Vec<String> {
    let replaced = |it: &Command| {
        let goes = it.candidates.iter().map(|it| it.node.as_str());
        let comes = it.replacements().iter().map(|it| {
            let best = &it.best;
            let capacity_type = CapacityType::word(best.capacity_type);
            format!(
                "{} {capacity_type} {}",
                best.instance_type,
                best.zone.as_deref().unwrap_or_default()
            )
        });
        let (goes, comes): (Vec<&str>, Vec<String>) = (goes.collect(), comes.collect());
        format!("{} -> {}", goes.join("+"), comes.join("+"))
    };
    decision.commands.iter().map(replaced).collect()
}

/// Keeps the prices of the nodes that it is told of.
struct ToldPrices(std::sync::Mutex<BTreeSet<String>>);

impl RankHook for ToldPrices {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let prices = round.usage.price.iter();
        let pools = round.usage.nodepool.iter();
        let told = pools.zip(prices).map(|(pool, price)| {
            let pool = &round.table.symbols[*pool as usize];
            format!("{pool} {price}")
        });
        self.0.lock().unwrap().extend(told);
        PriceRank.rank(round)
    }

    fn identity(&self) -> String {
        "told-prices".to_owned()
    }
}

#[test]
fn policies_are_told_what_nodes_of_pools_cost_that_may_not_buy() {
    let mut world = World::new(
        "pool web\npool kept replicas=1\nnode n1 medium on-demand a\nnode n2 nano on-demand a pool=kept\npod p n1 900",
    );
    world.pools.retain(|it| !it.node_pool.is_static());
    let rank = ToldPrices(std::sync::Mutex::default());
    world.decide_by(PolicyHooks {
        rank: &rank,
        ..natively()
    });
    let told = rank.0.into_inner().unwrap();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(told, ["kept 0.05", "web 0.2"]);
}

const BOTH: &str = "pool web capacity=on-demand,spot";

#[test]
fn a_preferred_node_stays_and_goes_once_nobody_prefers_it() {
    // The type, the zone and the purchase that the policy prefers each cost more by the price list.
    let mut world = World::new("node n1 medium on-demand a\npod p n1 900");
    assert_eq!(
        told(&decided(&mut world, "medium", preferring("medium"))),
        [""; 0]
    );
    let by_list = decided(&mut world, "list", |row| Some(row.price));
    assert_eq!(told(&by_list), ["n1 -> nano on-demand a"]);
    let spot_is_dear = |row: &Row<'_>| {
        Some(if row.is_spot {
            row.price * 3.0
        } else {
            row.price
        })
    };
    let mut world = World::new(&format!("{BOTH}\nnode n1 nano on-demand a\npod p n1 900"));
    assert_eq!(
        told(&decided(&mut world, "spot_is_dear", spot_is_dear)),
        [""; 0]
    );
    let by_list = decided(&mut world, "list", |row| Some(row.price));
    assert_eq!(told(&by_list), ["n1 -> nano spot a"]);
}

#[test]
fn what_is_excluded_is_neither_bought_nor_reckoned_with() {
    let text = format!("{BOTH}\nnode n1 small on-demand a\npod p n1 900");
    let mut world = World::new(&text);
    let no_spot = |row: &Row<'_>| (!row.is_spot).then_some(row.price);
    let decision = decided(&mut world, "no_spot", no_spot);
    assert_eq!(told(&decision), ["n1 -> nano on-demand a"]);
    let claim = &decision.commands[0].replacements()[0];
    assert_eq!(
        claim.capacity_types,
        BTreeSet::from([CapacityType::OnDemand])
    );
    let mut world = World::new(&format!("{BOTH}\nnode n1 nano on-demand a\npod p n1 900"));
    assert_eq!(
        told(&decided(&mut world, "no_spot", no_spot)),
        [""; 0],
        "only spot is cheaper"
    );
}

#[test]
fn several_nodes_for_one_are_reckoned_in_the_same_currency() {
    // By the list a large node for two mediums saves nothing; the policy gives large ones away.
    let text =
        "node n1 medium on-demand a\npod p n1 3000\nnode n2 medium on-demand a\npod q n2 3000";
    let mut world = World::new(text);
    assert_eq!(
        told(&decided(&mut world, "list", |row| Some(row.price))),
        [""; 0]
    );
    let large = |row: &Row<'_>| {
        let factor = if row.instance_type == "large" {
            0.5
        } else {
            1.0
        };
        Some(row.price * factor)
    };
    assert_eq!(
        told(&decided(&mut world, "large", large)),
        [""; 0],
        "too early"
    );
    world.now = hours_later(24);
    assert_eq!(
        told(&decided(&mut world, "large", large)),
        ["n1+n2 -> large on-demand a"]
    );
}

fn hours_later(hours: i64) -> Timestamp {
    world::now() + jiff::SignedDuration::from_hours(hours)
}

fn preferring(word: &'static str) -> impl Fn(&Row<'_>) -> Option<f64> + Send + Sync {
    move |row| {
        let is_it = row.instance_type == word || row.zone == word;
        Some(if is_it { row.price * 0.1 } else { row.price })
    }
}

#[test]
fn a_preference_moves_nodes_once_it_has_held_long_enough_to_pay() {
    // It saves 0.04 an hour and disturbs one pod and a node, worth 0.02.
    let mut world = World::new("node n1 nano on-demand a\npod p n1 900");
    let mut look = |minutes: i64| {
        world.now = world::now() + jiff::SignedDuration::from_mins(minutes);
        decided(&mut world, "small", preferring("small"))
    };
    let decision = look(0);
    assert_eq!(told(&decision), [""; 0]);
    assert_eq!(outcome(&decision, "n1"), "node-preference-too-young");
    assert_eq!(told(&look(29)), [""; 0], "too early");
    assert_eq!(told(&look(31)), ["n1 -> small on-demand a"]);
}

#[test]
fn a_preference_for_what_costs_more_than_its_bound_moves_nothing() {
    for (premium, expected) in [("100%", vec![]), ("off", vec!["n1 -> medium on-demand a"])] {
        let mut world = World::new(&format!(
            "pool web premium={premium}\nnode n1 nano on-demand a\npod p n1 900"
        ));
        // Four times the price of the node that there is.
        let mut look = |hours: i64| {
            world.now = hours_later(hours);
            told(&decided(&mut world, "medium", preferring("medium")))
        };
        assert_eq!(look(0), [""; 0], "{premium}");
        assert_eq!(look(24), expected, "{premium}");
    }
}

#[test]
fn a_policy_that_changes_its_mind_moves_nothing() {
    let mut world = World::new("node n1 small on-demand a\npod p n1 1900");
    for round in 0..200 {
        let favourite = if round % 2 == 0 { "a" } else { "b" };
        let flips = |row: &Row<'_>| {
            let factor = if row.zone == favourite { 0.5 } else { 1.0 };
            Some(row.price * factor)
        };
        let decision = decided(&mut world, "flips", flips);
        assert_eq!(told(&decision), [""; 0], "round {round}");
        // Something else happens all the time, so that every loop looks.
        world.apply(Event::OfferingsChanged);
        world.now += jiff::SignedDuration::from_mins(10);
    }
}

#[test]
fn a_node_whose_offering_cannot_be_bought_is_reckoned_as_the_policy_says() {
    // Nobody may buy mediums now; the one that runs is preferred all the same.
    let types: Vec<_> = world::catalogue()
        .iter()
        .map(|it| {
            let mut it = (**it).clone();
            let is_sold = it.name != "medium";
            for offering in it.offerings.iter_mut().filter(|_| !is_sold) {
                offering.availability = Availability::Unavailable;
            }
            std::sync::Arc::new(it)
        })
        .collect();
    let mut world = World::with_types("node n1 medium on-demand a\npod p n1 900", &types.into());
    let medium = |row: &Row<'_>| {
        let factor = if row.instance_type == "medium" {
            0.1
        } else {
            1.0
        };
        Some(row.price * factor)
    };
    assert_eq!(told(&decided(&mut world, "medium", medium)), [""; 0]);
    let by_list = decided(&mut world, "list", |row| Some(row.price));
    assert_eq!(told(&by_list), ["n1 -> nano on-demand a"]);
}

/// Holds every move for a week.
struct Holding(&'static str);

impl ConsolidationHook for Holding {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        DefaultConsolidation.order(round)
    }

    fn judge(&self, _round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let hold = Verdict {
            decision: VerdictDecision::Hold,
            score: 0.0,
            reason: "not this week".to_owned(),
            retry_after_seconds: 7 * 86_400,
        };
        JudgeAnswer {
            verdicts: vec![hold; moves.len()],
            uses: Vec::new(),
        }
    }

    fn identity(&self) -> String {
        self.0.to_owned()
    }
}

#[test]
fn a_hold_lasts_an_hour_at_most_and_no_longer_than_its_policy() {
    for (text, kind) in [
        ("node n1 small on-demand a\npod p n1 900", "consolidation"),
        ("node n1 small on-demand a", "emptiness"),
        ("node n1 small on-demand a drifted\npod p n1 900", "drift"),
    ] {
        let (holding, mut world) = (Holding("held"), World::new(text));
        let look = |world: &mut World, judge: &dyn ConsolidationHook| {
            let hooks = PolicyHooks {
                consolidation: judge,
                ..natively()
            };
            let decision = world.decide_by(hooks);
            world.memory = decision.memory.clone();
            decision
        };
        let decision = look(&mut world, &holding);
        assert_eq!(outcome(&decision, "n1"), "node-policy-held", "{kind}");
        let held: BTreeMap<_, _> = world.memory.holds.clone();
        assert_eq!(held.values().next(), Some(&hours_later(1)), "{kind}");
        let decision = look(&mut world, &DefaultConsolidation);
        assert_eq!(decision.commands.len(), 1, "{kind}: gone with its policy");
    }
}

/// Renews nodes in their last day.
struct Renewing {
    is_asked_for: bool,
}

impl ConsolidationHook for Renewing {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        DefaultConsolidation.order(round)
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let mut answer = DefaultConsolidation.judge(round, moves);
        for (verdict, it) in answer.verdicts.iter_mut().zip(moves) {
            let row = it.remove[0] as usize;
            let is_ending = round.nodes.time_to_expiry[row] < 86_400;
            if it.kind == hooks::disruption::MoveKind::Expire && is_ending {
                verdict.decision = VerdictDecision::Approve;
            }
        }
        answer
    }

    fn needs(&self) -> hooks::disruption::Needs {
        hooks::disruption::Needs {
            expire: self.is_asked_for,
            ..hooks::disruption::Needs::default()
        }
    }
}

#[test]
fn a_node_is_renewed_before_it_expires_where_a_policy_asks_and_approves() {
    // The first to expire goes first, within the budget for drift.
    let nodes = "node n1 nano on-demand a expires=3h\npod p n1 900\nnode n2 nano on-demand a expires=2h30m\npod q n2 900";
    for (pool, is_asked_for, expected) in [
        ("pool web", true, vec!["n2 -> nano on-demand a"]),
        ("pool web", false, vec![]),
        ("pool web budget=0", true, vec![]),
    ] {
        let world = World::new(&format!("{pool}\n{nodes}"));
        let judge = Renewing { is_asked_for };
        let hooks = PolicyHooks {
            consolidation: &judge,
            ..natively()
        };
        let decision = world.decide_by(hooks);
        assert_eq!(told(&decision), expected, "{pool} {is_asked_for}");
    }
}
