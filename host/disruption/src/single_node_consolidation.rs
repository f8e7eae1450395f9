//! Single-node consolidation: every node once, pools taking turns so that none waits for a large one.
//!
//! Answers to Karpenter's `disruption/singlenodeconsolidation.go`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::candidate::Candidate;

/// Proposals judged in one call.
pub const BATCH: usize = 16;

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
