//! Loops told as a few lines of text: what the cluster is, what must come of it.

mod currency;
mod cut_off;
mod deletion_costs;
mod end_state;
mod invariants;
mod joining;
mod patience;
mod policies;
mod scenarios;
mod world;

use std::collections::BTreeSet;

use apis::NodeRef;
use hooks::disruption::{
    AllowAnswer, BudgetReason, BudgetRound, BudgetsHook, ConsolidationHook, ConsolidationRound,
    DeclaredBudgets, DefaultConsolidation, JudgeAnswer, Move, OrderAnswer, Verdict,
    VerdictDecision,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use scheduling::problem::Options;
use scheduling::ranking::PriceRank;
use state::Event;
use state::ledger::OutcomeId;

use super::*;
use crate::history::History;
use crate::input::Gates;
use crate::validation::{Rejection, supposing_begun, validate};
use crate::{Command, Execution};
use world::{World, instance_type, now};

fn natively() -> PolicyHooks<'static> {
    PolicyHooks {
        rank: &PriceRank,
        consolidation: &DefaultConsolidation,
        budgets: &DeclaredBudgets,
    }
}

fn told(decision: &Decision) -> String {
    let commands: Vec<String> = decision
        .commands
        .iter()
        .map(|it| {
            let mut nodes: Vec<&str> = it.candidates.iter().map(|it| it.node.as_str()).collect();
            nodes.sort_unstable();
            let comes: Vec<&str> = it
                .replacements()
                .iter()
                .map(|it| it.best.instance_type.as_str())
                .collect();
            let kind = it.method.consolidation_type();
            let kind = match it.method {
                Method::Repair => "repair",
                Method::StaticDrift => "static drift",
                Method::Drift => "drift",
                Method::Expiry => "expiry",
                Method::Emptiness
                | Method::MultiNodeConsolidation
                | Method::SingleNodeConsolidation => kind,
            };
            let first = match it.execution {
                Execution::ReplaceFirst(_) => "",
                Execution::TerminateFirst(_) => " first",
                Execution::Reboot => " reboots",
            };
            let arrow = if comes.is_empty() {
                String::new()
            } else {
                format!(" -> {}", comes.join(" "))
            };
            format!("{kind}: {}{first}{arrow}", nodes.join(" "))
        })
        .collect();
    commands.join("; ")
}

fn outcome(decision: &Decision, node: &str) -> &'static str {
    decision
        .outcomes
        .iter()
        .find(|it| it.node == node)
        .map_or("absent", |it| it.outcome.name())
}

#[test]
fn nodes_whose_pods_fit_only_together_become_fewer() {
    // Of three nodes none can go alone: the large pod of each fits no other.
    let types = [instance_type("large", 8, 0.4)];
    let text = ["n1", "n2", "n3"].map(|it| {
        format!("node {it} large on-demand a\npod a-{it} {it} 3900\npod b-{it} {it} 1300\n")
    });
    let decision = World::with_types(&text.concat(), &types.into()).decide();
    assert_eq!(told(&decision), "multi: n1 n2 -> large");
}

#[test]
fn nodes_do_not_become_fewer_if_the_scheduler_would_not_place_their_pods_as_planned() {
    // As above, but the small pods come first and go to the new node, which is emptier than the one that stays.
    let types = [instance_type("large", 8, 0.4)];
    let text = ["n1", "n2", "n3"].map(|it| {
        format!(
            "node {it} large on-demand a\npod a-{it} {it} 3900\npod b-{it} {it} 1300 priority=1\n"
        )
    });
    let decision = World::with_types(&text.concat(), &types.into()).decide();
    assert_eq!(told(&decision), "");
}

#[test]
fn every_node_has_exactly_one_outcome() {
    let world = "
        node claim-only nano on-demand a claim-only
        node uninitialized nano on-demand a uninitialized
        node marked nano on-demand a marked
        node nominated nano on-demand a nominated
        node awaiting nano on-demand a fresh
        pod w - 900 placed=awaiting
        node annotated nano on-demand a do-not-disrupt
        node strayed nano on-demand a pool=gone
        node queued nano on-demand a queued
        node protected small on-demand a
        pod p protected 1900 do-not-disrupt=true
        node briefly small on-demand a
        pod q briefly 1900 do-not-disrupt=2h
        node young small on-demand a young
        pod r young 1900
        node full small on-demand a
        pod s full 1900
        node elapsed small on-demand a
        pod t elapsed 1900 do-not-disrupt=30m
    ";
    let decision = World::new(world).decide();
    for (node, expected) in [
        ("claim-only-claim", "node-missing"),
        ("uninitialized", "node-not-initialized"),
        ("marked", "node-marked-for-deletion"),
        ("nominated", "node-nominated"),
        ("awaiting", "node-nominated"),
        ("annotated", "node-do-not-disrupt"),
        ("strayed", "node-pool-not-found"),
        ("queued", "node-in-queue"),
        ("protected", "node-pod-do-not-disrupt"),
        ("briefly", "node-pod-do-not-disrupt"),
        ("young", "node-not-consolidatable"),
        ("full", "node-no-cheaper-replacement"),
        ("elapsed", "node-no-cheaper-replacement"),
    ] {
        assert_eq!(outcome(&decision, node), expected, "{node}");
    }
    assert_eq!(decision.outcomes.len(), 13);
    let silent: Vec<_> = decision
        .blocked
        .iter()
        .filter(|it| it.event_message().is_none())
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(silent, ["queued"], "every other block is told");
}

#[test]
fn an_empty_node_waits_for_the_pods_that_the_scheduler_is_about_to_bind() {
    for (opened, expected) in [("fresh", "node-nominated"), ("", "node-chosen-empty")] {
        let world = format!(
            "
            node n nano on-demand a {opened}
            pod p - 900 placed=n
        "
        );
        let decision = World::new(&world).decide();
        assert_eq!(outcome(&decision, "n"), expected, "{opened}");
    }
}

#[test]
fn a_pdb_blocks_graceful_methods() {
    for (pdbs, expected) in [
        ("pdb one 0", "node-pod-pdb-blocked"),
        ("pdb one 1\npdb two 1", "node-pod-many-pdbs"),
        ("pdb one 1", "node-chosen-single"),
    ] {
        let decision =
            World::new(&format!("node n1 large on-demand a\npod p n1 900\n{pdbs}")).decide();
        assert_eq!(outcome(&decision, "n1"), expected, "{pdbs}");
    }
}

#[test]
fn spot_to_spot_needs_fifteen_cheaper_types() {
    for (cheaper, expected) in [
        (14, ""),
        (15, "single: n1 -> t00"),
        (40, "single: n1 -> t00"),
    ] {
        let mut types: Vec<_> = (0..cheaper)
            .map(|it| instance_type(&format!("t{it:02}"), 2, 0.1 + 0.001 * f64::from(it)))
            .collect();
        types.push(instance_type("large", 8, 0.4));
        let text = "pool web capacity=spot\nnode n1 large spot a\npod p n1 900";
        let mut world = World::with_types(text, &types.into());
        world.gates.spot_to_spot = true;
        let decision = world.decide();
        assert_eq!(told(&decision), expected, "{cheaper}");
        if let Some(command) = decision.commands.first() {
            assert_eq!(command.replacements()[0].instance_types.len(), 15);
        } else {
            assert_eq!(outcome(&decision, "n1"), "node-spot-to-spot-few-types");
        }
    }
}

#[test]
fn what_found_nothing_does_not_look_again_until_something_changes() {
    let mut world = World::new("node n1 small on-demand a\npod p n1 1900");
    let first = world.decide();
    assert_eq!(outcome(&first, "n1"), "node-no-cheaper-replacement");
    world.memory = first.memory.clone();
    let second = world.decide();
    assert_eq!(second.outcomes, first.outcomes, "the finding is repeated");
    assert!(second.record(now()).same_findings(&first.record(now())));
    let mut freed = World::new("node n1 small on-demand a\npod p n1 900\npdb one 0");
    freed.memory = freed.decide().memory;
    freed.pdb("one", "1", "web");
    assert_eq!(
        told(&freed.decide()),
        "single: n1 -> nano",
        "what opened since is looked at"
    );
    world.pod("q", "n1", "10", &[]);
    world.apply(Event::deleted::<v1::Pod>(scheduling::pod::PodKey::new(
        "default", "p",
    )));
    assert_eq!(told(&world.decide()), "single: n1 -> nano");
}

/// Says what its fields say.
struct Opinion(VerdictDecision, f64);

impl ConsolidationHook for Opinion {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        OrderAnswer {
            keys: vec![self.1; round.nodes.len()],
            uses: Vec::new(),
        }
    }

    fn judge(&self, _: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let verdict = Verdict {
            decision: self.0,
            score: 1.0,
            reason: "because".into(),
            retry_after_seconds: 60,
        };
        JudgeAnswer {
            verdicts: vec![verdict; moves.len()],
            uses: Vec::new(),
        }
    }

    fn identity(&self) -> String {
        format!("{:?}", self.0)
    }
}

impl BudgetsHook for Opinion {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        let mut answer = DeclaredBudgets.allow(round);
        for item in &mut answer.items {
            item.allowed = 0;
        }
        answer
    }
}

#[test]
fn a_policy_that_takes_over_is_asked_though_the_one_before_found_nothing() {
    let mut world = World::new("node n1 large on-demand a\npod p n1 900");
    let look = |world: &World, opinion: &Opinion| {
        let hooks = PolicyHooks {
            consolidation: opinion,
            ..natively()
        };
        world.decide_by(hooks)
    };
    let rejects = Opinion(VerdictDecision::Reject, 0.0);
    world.memory = look(&world, &rejects).memory;
    let again = look(&world, &rejects);
    assert_eq!(outcome(&again, "n1"), "node-policy-rejected");
    assert!(again.scored.is_empty(), "the finding is repeated");
    let other = Opinion(VerdictDecision::Approve, 0.0);
    assert_eq!(outcome(&look(&world, &other), "n1"), "node-chosen-single");
}

#[test]
fn policies_have_a_say_and_not_the_last_word() {
    use VerdictDecision::{Approve, Hold, Reject};
    let could_go = "node n1 large on-demand a\npod p n1 900";
    let may_not = "node n1 large on-demand a\npod p n1 900 do-not-disrupt=true";
    let no_gain = "node n1 nano on-demand a\npod p n1 900";
    for (world, opinion, expected) in [
        (could_go, Opinion(Approve, 0.0), "node-chosen-single"),
        (could_go, Opinion(Reject, 0.0), "node-policy-rejected"),
        (could_go, Opinion(Hold, 0.0), "node-policy-held"),
        (could_go, Opinion(Approve, -1.0), "node-policy-skipped"),
        (may_not, Opinion(Approve, 0.0), "node-pod-do-not-disrupt"),
        (
            no_gain,
            Opinion(Approve, 0.0),
            "node-no-cheaper-replacement",
        ),
        (
            "node n1 large on-demand a",
            Opinion(Reject, 0.0),
            "node-policy-rejected",
        ),
    ] {
        let hooks = PolicyHooks {
            consolidation: &opinion,
            ..natively()
        };
        let decision = World::new(world).decide_by(hooks);
        assert_eq!(outcome(&decision, "n1"), expected, "{world}");
        let held = decision.memory.holds.get("n1-claim").copied();
        assert_eq!(held.is_some(), opinion.0 == Hold, "{world}");
    }
    let hooks = PolicyHooks {
        budgets: &Opinion(Approve, 0.0),
        ..natively()
    };
    let decision = World::new(could_go).decide_by(hooks);
    assert_eq!(outcome(&decision, "n1"), "node-budget-exhausted");
}

#[test]
fn a_budget_that_cannot_be_understood_is_told_of_a_pool_without_nodes_too() {
    let budgets = r#"[{"nodes":"1","schedule":"every_day","duration":"1h"}]"#;
    let decision = World::new(&format!("pool web budgets={budgets}")).decide();
    let details = decision.budgets.details;
    let faults = details.iter().filter(|it| it.allowed == 0);
    let faults = faults.filter(|it| it.why.contains("cannot be understood"));
    assert_eq!(faults.count(), BudgetReason::ALL.len(), "{details:?}");
}

/// Another loop, while commands wait to be checked again.
fn decide_meanwhile(world: &World, waiting: &[Command]) -> Decision {
    world.run(natively(), |input, hooks| {
        let now = input.options.now;
        let until = now + jiff::SignedDuration::from_secs(20);
        let input = supposing_begun(input.clone(), waiting, until);
        decide(&input, hooks, &Interrupt::never())
    })
}

#[test]
fn while_a_command_waits_its_nodes_and_their_budget_are_gone() {
    for (text, first, second, outcomes) in [
        (
            "pool web budget=1\nnode n1 large on-demand a\nnode n2 large on-demand a",
            "empty: n1",
            "",
            ["node-in-queue", "node-budget-exhausted"],
        ),
        (
            "node n1 large on-demand a\nnode n2 large on-demand a\npod p n2 900\n\
             node n3 medium on-demand b do-not-disrupt\npod q n3 2000",
            "empty: n1",
            "single: n2",
            ["node-in-queue", "node-chosen-single"],
        ),
        (
            "node n1 large on-demand a\nnode n2 large on-demand a\npod p n2 900",
            "empty: n1",
            "single: n2 -> nano",
            ["node-in-queue", "node-chosen-single"],
        ),
    ] {
        let world = World::new(text);
        let waiting = world.decide().commands;
        assert_eq!(told(&world.decide()), first, "{text}");
        let decision = decide_meanwhile(&world, &waiting);
        assert_eq!(told(&decision), second, "{text}");
        invariants::each_node_once(&world, &decision);
        for (node, expected) in ["n1", "n2"].into_iter().zip(outcomes) {
            assert_eq!(outcome(&decision, node), expected, "{text}");
        }
        for command in waiting.iter().chain(&decision.commands) {
            let gone = &waiting[0].candidates;
            let goes = |it: &NodeRef| gone.iter().any(|gone| gone.node == it.name());
            assert!(!command.destinations.iter().any(goes), "{text}");
            let checked = world.run(natively(), |input, hooks| {
                validate(input, hooks, &Interrupt::never(), command.clone())
            });
            assert!(
                checked.survivor.is_ok() || !command.replacements().is_empty(),
                "{text}"
            );
        }
    }
}

type Change = fn(&mut World);

/// Of each case: a story, a cluster, what happens to it once a command was decided, and what goes then or why none
/// does.
fn second_looks(cases: &[(&str, &str, Change, &str)]) {
    for (story, text, change, expected) in cases {
        let mut world = World::new(text);
        let command = world.decide().commands.remove(0);
        change(&mut world);
        let decided = command.candidates.len();
        let checked = world.run(natively(), |input, hooks| {
            validate(input, hooks, &Interrupt::never(), command)
        });
        let going = checked
            .survivor
            .as_ref()
            .map_or(0, |it| it.candidates.len());
        assert_eq!(going + checked.dropped.len(), decided, "{story}");
        let told = match checked.survivor {
            Ok(command) => command
                .candidates
                .iter()
                .map(|it| it.node.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            Err(Rejection::Churn(_)) => "churn".to_owned(),
            Err(Rejection::Budget(_)) => "budget".to_owned(),
            Err(Rejection::Scheduling(_)) => "scheduling".to_owned(),
        };
        assert_eq!(told, *expected, "{story}");
    }
}

#[test]
fn a_command_is_checked_again_before_it_starts() {
    let cases: [(&str, &str, Change, &str); 6] = [
        (
            "unchanged",
            "node n1 large on-demand a\npod p n1 900",
            |_| {},
            "n1",
        ),
        (
            "filled meanwhile",
            "node n1 large on-demand a",
            |world| world.pod("p", "n1", "100", &[]),
            "churn",
        ),
        (
            "one of two filled",
            "node n1 large on-demand a\nnode n2 large on-demand a",
            |world| world.pod("p", "n1", "100", &[]),
            "n2",
        ),
        (
            "protected meanwhile",
            "node n1 large on-demand a\npod p n1 900",
            |world| world.pod("q", "n1", "100", &["do-not-disrupt=true"]),
            "churn",
        ),
        (
            "grew meanwhile",
            "node n1 large on-demand a\npod p n1 900",
            |world| world.pod("q", "n1", "5000", &[]),
            "scheduling",
        ),
        (
            "budget used up meanwhile",
            "pool web budget=1\nnode n1 large on-demand a\npod p n1 900",
            |world| {
                world.node("n2", &["small", "on-demand", "a", "not-ready"]);
                world.pod("q", "n2", "1900", &[]);
            },
            "budget",
        ),
    ];
    second_looks(&cases);
}

#[test]
fn of_nodes_that_only_go_those_that_still_can_go_without_the_others() {
    const TWO_ONTO_A_THIRD: &str = "node n1 small on-demand a\npod p n1 100\nnode n2 small on-demand a\npod q n2 100\nnode n3 large on-demand a\npod r n3 100 do-not-disrupt=true";
    second_looks(&[
        ("two unchanged", TWO_ONTO_A_THIRD, |_| {}, "n1 n2"),
        (
            "one of two protected meanwhile",
            TWO_ONTO_A_THIRD,
            |world| world.pod("s", "n1", "100", &["do-not-disrupt=true"]),
            "n2",
        ),
        (
            "one of two protected and no room for the other",
            TWO_ONTO_A_THIRD,
            |world| {
                world.pod("s", "n1", "1900", &["do-not-disrupt=true"]);
                world.pod("t", "n3", "7900", &[]);
            },
            "scheduling",
        ),
    ]);
}

#[test]
fn an_unchanged_cluster_is_not_simulated_again_even_where_a_budget_leaves_nodes_out() {
    /// Counts how often it is asked, which is once in every loop that simulates.
    #[derive(Default)]
    struct Counting(std::sync::atomic::AtomicU32);
    impl scheduling::ranking::RankHook for Counting {
        fn rank(&self, round: &scheduling::ranking::RankRound) -> scheduling::ranking::RankAnswer {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            PriceRank.rank(round)
        }
    }
    let nodes = "node n1 nano on-demand a\npod p n1 900\nnode n2 nano on-demand a\npod q n2 900";
    for budget in ["100%", "1"] {
        let text = format!("pool web budget={budget}\n{nodes}");
        let mut world = World::new(&text);
        let counting = Counting::default();
        let look = |world: &mut World| {
            let hooks = PolicyHooks {
                rank: &counting,
                ..natively()
            };
            let decision = world.decide_by(hooks);
            assert!(decision.commands.is_empty(), "{budget}");
            assert_eq!(outcome(&decision, "n1"), "node-no-cheaper-replacement");
            world.memory = decision.memory;
            counting.0.load(std::sync::atomic::Ordering::Relaxed)
        };
        assert_eq!(look(&mut world), 1, "{budget}");
        assert_eq!(look(&mut world), 1, "{budget}");
        world.apply(Event::OfferingsChanged);
        assert_eq!(look(&mut world), 2, "{budget}");
    }
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
