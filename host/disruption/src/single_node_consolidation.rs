//! Single-node consolidation: every node once, pools taking turns so that none waits for a large one.
//!
//! Answers to Karpenter's `disruption/singlenodeconsolidation.go`.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use crate::candidate::Candidate;

/// Proposals judged in one call.
pub const BATCH: usize = 16;

/// The rows again, one of each pool in turn; pools that the last run did not reach go first.
pub fn interleave(candidates: &[Candidate], rows: &[usize], unseen: &[String]) -> Vec<usize> {
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
    // Stable: among equals the pool of the better node stays ahead.
    order.sort_by_key(|pool| !unseen.iter().any(|it| it == pool));
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
