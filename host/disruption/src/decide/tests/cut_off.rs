//! Loops that are cut off: what they did not come to is said, and the next one goes on with it.

use std::fmt::Write;

use super::*;

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

/// Says the same of every move, and has the loop stop at the first.
struct CutsOff<'a> {
    interrupt: &'a Interrupt,
    decision: VerdictDecision,
}

impl ConsolidationHook for CutsOff<'_> {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        DefaultConsolidation.order(round)
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        self.interrupt.trip();
        let mut answer = DefaultConsolidation.judge(round, moves);
        for verdict in &mut answer.verdicts {
            verdict.decision = self.decision;
        }
        answer
    }
}

#[test]
fn no_policy_is_asked_about_another_drifted_node_once_the_loop_is_cut_off() {
    let drifted = |pool: &str| {
        let nodes = ["n1", "n2", "n3"]
            .map(|it| format!("\nnode {it} nano on-demand a drifted\npod p-{it} {it} 900"));
        World::new(&format!("{pool}{}", nodes.concat()))
    };
    let (approve, reject) = (VerdictDecision::Approve, VerdictDecision::Reject);
    for (pool, decision, commands, first) in [
        (
            "pool web replicas=3",
            approve,
            "static drift: n1 -> nano",
            "node-chosen-drifted",
        ),
        ("pool web replicas=3", reject, "", "node-policy-rejected"),
        ("pool web", reject, "", "node-policy-rejected"),
    ] {
        let interrupt = Interrupt::never();
        let consolidation = CutsOff {
            interrupt: &interrupt,
            decision,
        };
        let hooks = PolicyHooks {
            consolidation: &consolidation,
            ..natively()
        };
        let found = drifted(pool).decide_until(hooks, &interrupt);
        assert_eq!(told(&found), commands, "{pool} {decision:?}");
        let outcomes = ["n1", "n2", "n3"].map(|it| outcome(&found, it));
        let expected = [first, "node-not-reached", "node-not-reached"];
        assert_eq!(outcomes, expected, "{pool} {decision:?}");
    }
}
