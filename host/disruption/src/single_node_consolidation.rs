//! Single-node consolidation: every node once, pools taking turns so that none waits for a large one.
//!
//! Moves that do not hinder each other go in one command. Answers to Karpenter's
//! `disruption/singlenodeconsolidation.go`, which takes the first node it finds and waits for it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::candidate::Candidate;
use crate::command::Proposal;
use crate::multi_node_consolidation::NODES_MAX;

/// Proposals judged in one call.
pub const BATCH: usize = 16;

/// A scan that has found so many moves need not look further: they will not all go together.
pub const FOUND_ENOUGH: usize = 64;

/// Part of what the moves save alone that they must save together.
const KEPT_SHARE: f64 = 0.95;

/// The largest move that consists of `best` and of as many others as save together what they save alone; `None` where
/// no other can join. `compute` simulates a set of rows.
///
/// Others are tried in groups, which double while all goes well and halve when it does not.
pub fn join(
    best: &Proposal,
    others: &[Proposal],
    mut compute: impl FnMut(&[usize]) -> Option<Proposal>,
) -> Option<Proposal> {
    let mut joined: Option<Proposal> = None;
    let (mut ahead, mut size) = (others, 1);
    while !ahead.is_empty() {
        let whole = joined.as_ref().unwrap_or(best);
        let (group, rest) = ahead.split_at(size.min(ahead.len()));
        let rows: Vec<usize> = group
            .iter()
            .flat_map(|it| &it.rows)
            .chain(&whole.rows)
            .copied()
            .collect::<BTreeSet<usize>>()
            .into_iter()
            .collect();
        let alone: f64 = group.iter().map(Proposal::savings_per_hour).sum();
        let promised = whole.savings_per_hour() + alone;
        let found = (rows.len() <= NODES_MAX)
            .then(|| compute(&rows))
            .flatten()
            .filter(|it| it.savings_per_hour() >= promised * KEPT_SHARE);
        match found {
            Some(found) => {
                joined = Some(found);
                ahead = rest;
                size *= 2;
            }
            None if group.len() == 1 => ahead = rest,
            None => size = group.len() / 2,
        }
    }
    joined
}

/// The rows again, one of each pool in turn; nodes whose claims the last run did not reach go before all others.
pub fn interleave(
    candidates: &[Candidate],
    rows: &[usize],
    unseen: &BTreeSet<String>,
) -> Vec<usize> {
    let is_unseen = |row: &usize| {
        let candidate = candidates.get(*row);
        candidate.is_some_and(|it| unseen.contains(it.claim()))
    };
    let (first, last): (Vec<usize>, Vec<usize>) = rows.iter().partition(|row| is_unseen(row));
    let mut all = by_turns(candidates, &first);
    all.extend(by_turns(candidates, &last));
    all
}

fn by_turns(candidates: &[Candidate], rows: &[usize]) -> Vec<usize> {
    let mut order: Vec<&str> = Vec::new();
    let mut queues: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for &row in rows {
        let Some(candidate) = candidates.get(row) else {
            continue;
        };
        let pool = candidate.pool();
        if !queues.contains_key(pool) {
            order.push(pool);
        }
        queues.entry(pool).or_default().push_back(row);
    }
    let mut mixed = Vec::with_capacity(rows.len());
    while mixed.len() < rows.len() {
        let before = mixed.len();
        for pool in &order {
            mixed.extend(queues.get_mut(pool).and_then(VecDeque::pop_front));
        }
        if mixed.len() == before {
            break;
        }
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Cost;
    use crate::method::Method;

    fn removal(rows: &[usize]) -> Proposal {
        Proposal {
            manner: crate::Manner::ReplaceFirst,
            method: Method::SingleNodeConsolidation,
            rows: rows.to_vec(),
            replacements: Vec::new(),
            destinations: Vec::new(),
            before: Cost::at_list_price(rows.len() as f64),
            after: Cost::at_list_price(0.0),
        }
    }

    #[test]
    fn whoever_fits_joins_and_whoever_does_not_is_left_out() {
        let others: Vec<Proposal> = (1..40).map(|row| removal(&[row])).collect();
        let mut simulations = 0;
        // Rows 7 and 20 are where the pods of the others go.
        let joined = join(&removal(&[0]), &others, |rows| {
            simulations += 1;
            let hinders = rows.contains(&7) || rows.contains(&20);
            (!hinders).then(|| removal(rows))
        });
        let expected: Vec<usize> = (0..40).filter(|row| ![7, 20].contains(row)).collect();
        assert_eq!(joined.map(|it| it.rows), Some(expected));
        assert!(simulations < others.len(), "{simulations} simulations");
    }

    #[test]
    fn a_move_that_would_save_less_than_promised_does_not_join() {
        let joined = join(&removal(&[0]), &[removal(&[1])], |rows| {
            Some(Proposal {
                after: Cost::at_list_price(0.2),
                ..removal(rows)
            })
        });
        assert_eq!(joined, None);
    }

    #[test]
    fn a_command_has_a_hundred_nodes_at_most() {
        let others: Vec<Proposal> = (1..150).map(|row| removal(&[row])).collect();
        let joined = join(&removal(&[0]), &others, |rows| Some(removal(rows)));
        assert_eq!(joined.map(|it| it.rows.len()), Some(NODES_MAX));
    }
}
