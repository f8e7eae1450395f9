//! Which moves of single nodes go together in one command.

use std::fmt::Write as _;

use super::*;
use crate::candidate::{Candidate, Candidates};
use crate::command::{Cost, Proposal};
use crate::multi_node_consolidation::REMOVED_MAX;
use crate::single_node_consolidation::join;

fn nodes(count: usize) -> Vec<Candidate> {
    let mut text = String::new();
    for number in 0..count {
        writeln!(text, "node n{number:03} large on-demand a").unwrap();
    }
    World::new(&text).run(natively(), |input, _| {
        let now = input.options.now;
        Candidates::find(&input.snapshot, &input.types, &input.queued, now).candidates
    })
}

fn removal<'s>(candidates: &[&'s Candidate]) -> Proposal<'s> {
    Proposal {
        execution: Execution::DELETE,
        method: Method::SingleNodeConsolidation,
        candidates: candidates.to_vec(),
        destinations: Vec::new(),
        before: Cost::at_list_price(candidates.len() as f64),
        after: Cost::at_list_price(0.0),
    }
}

fn each(candidates: &[Candidate]) -> Vec<Proposal<'_>> {
    candidates.iter().map(|it| removal(&[it])).collect()
}

#[test]
fn whoever_fits_joins_and_whoever_does_not_is_left_out() {
    let nodes = nodes(40);
    let all = each(&nodes);
    let mut simulations = 0;
    // These two are where the pods of the others go.
    let hinders = |it: &Candidate| ["n007", "n020"].contains(&it.name());
    let joined = join(&all[0], &all[1..], |removed| {
        simulations += 1;
        (!removed.iter().any(|it| hinders(it))).then(|| removal(removed))
    });
    let expected = nodes.iter().filter(|it| !hinders(it)).map(Candidate::name);
    let joined = joined.unwrap().candidates;
    let joined: Vec<&str> = joined.into_iter().map(Candidate::name).collect();
    assert_eq!(joined, expected.collect::<Vec<_>>());
    assert!(simulations < nodes.len() - 1, "{simulations} simulations");
}

#[test]
fn a_move_that_would_save_less_than_promised_does_not_join() {
    let nodes = nodes(2);
    let all = each(&nodes);
    let joined = join(&all[0], &all[1..], |removed| {
        Some(Proposal {
            after: Cost::at_list_price(0.2),
            ..removal(removed)
        })
    });
    assert!(joined.is_none());
}

#[test]
fn a_command_has_a_hundred_nodes_at_most() {
    let nodes = nodes(150);
    let all = each(&nodes);
    let joined = join(&all[0], &all[1..], |removed| Some(removal(removed)));
    assert_eq!(joined.unwrap().candidates.len(), REMOVED_MAX);
}
