//! What policies are told, and where their word holds.

use super::*;

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
