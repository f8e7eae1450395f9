//! Which pods a scale-down takes first.

use hooks::disruption::DeclaredBudgets;

use crate::budgets::Budgets;
use crate::candidate::Candidates;
use crate::deletion_cost::{DeletionCost, rank};
use crate::input::context;

use super::{World, natively};

fn told(text: &str) -> String {
    let world = World::new(text);
    world.run(natively(), |input, _| {
        let now = input.options.now;
        let found = Candidates::find(&input.snapshot, &input.types, &input.queued, now);
        let world = input.budget_world(&input.memory.targets);
        let budgets = Budgets::ask(&world, context(&input.options), &DeclaredBudgets);
        let costs = rank(&input.snapshot, &found, &budgets);
        let word = |cost: DeletionCost| match cost {
            DeletionCost::Going => "going".to_owned(),
            DeletionCost::Rank(rank) => rank.to_string(),
            DeletionCost::Unset => "none".to_owned(),
        };
        let words: Vec<String> = costs
            .iter()
            .map(|it| format!("{} {}", it.node, word(it.cost)))
            .collect();
        words.join(", ")
    })
}

#[test]
fn nodes_that_go_come_first_then_drifted_ones_then_the_wasteful() {
    let cases = [
        (
            "node n1 small on-demand a\npod p n1 900\nnode n2 large on-demand a\npod q n2 900",
            "n2 -2, n1 -1",
        ),
        (
            "node n1 small on-demand a drifted\npod p n1 900\nnode n2 large on-demand a\npod q n2 900\n\
             node n3 small on-demand a marked\npod r n3 900",
            "n3 going, n1 -2, n2 -1",
        ),
        // What holds a node keeps it out of the ranking.
        (
            "node n1 small on-demand a\npod p n1 900 do-not-disrupt=true\nnode n2 small on-demand a\npod q n2 900",
            "n2 -1, n1 none",
        ),
        (
            "pool web after=Never\nnode n1 small on-demand a\npod p n1 900\nnode n2 small on-demand a drifted\npod q n2 900",
            "n2 -1, n1 none",
        ),
        (
            "pool web budget=1\nnode n1 small on-demand a\npod p n1 900\nnode n2 large on-demand a\npod q n2 900",
            "n2 -1, n1 none",
        ),
        (
            "node n1 small on-demand a uninitialized\npod p n1 900",
            "n1 none",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(told(text), expected, "{text}");
    }
}
