//! Multi-node consolidation: the longest run of nodes that can go together, in the policy's order or the most wasteful
//! first; and where there is none, the most wasteful nodes for a cheaper set.
//!
//! The run is found by halving, because the more nodes go the less likely their pods still fit. Answers
//! to Karpenter's `disruption/multinodeconsolidation.go`, which has no second part.

use crate::candidate::Candidate;
use crate::command::Proposal;
use crate::consolidation::{Floor, SAVINGS_SHARE_MIN};

/// How many of the most wasteful nodes are tried together.
pub const EXCHANGED: [usize; 11] = [2, 3, 4, 6, 8, 12, 16, 24, 36, 60, 100];
/// A smaller move is preferred to the one that saves most if it saves this share of it...
const ENOUGH: f64 = 0.9;
/// ...and leaves a bill that is at most this many times the least: where nearly all goes, what is left counts.
const LEFT_MAX: f64 = 1.05;

/// Most nodes of one command.
pub const NODES_MAX: usize = 100;

/// Every valid proposal met while halving, longest last. `try_first` simulates the first so many rows.
pub fn search(
    rows: &[usize],
    mut try_first: impl FnMut(&[usize]) -> Option<Proposal>,
) -> Vec<Proposal> {
    if rows.len() < 2 {
        return Vec::new();
    }
    let mut valid = Vec::new();
    let (mut low, mut high) = (1, (rows.len() - 1).min(NODES_MAX));
    while low <= high {
        let middle = usize::midpoint(low, high);
        match rows.get(..=middle).and_then(&mut try_first) {
            Some(proposal) => {
                valid.push(proposal);
                low = middle + 1;
            }
            None => high = middle - 1,
        }
    }
    valid
}

/// The rows whose cost exceeds the least that their pods could cost by as much as a move must save, most wasteful
/// first: the others would only make the move larger.
pub fn by_waste(candidates: &[Candidate], rows: &[usize], floor: &Floor) -> Vec<usize> {
    let waste = |row: usize| {
        let it = candidates.get(row)?;
        let cost = it.cost.effective_per_hour;
        let waste = cost - floor.cost_per_hour(&it.requests);
        (waste >= cost * SAVINGS_SHARE_MIN).then_some(waste)
    };
    let mut wasteful: Vec<(f64, usize)> = rows
        .iter()
        .filter_map(|&row| Some((waste(row)?, row)))
        .filter(|(waste, _)| *waste > 0.0)
        .collect();
    // Stable: among equals the policy's order stands.
    wasteful.sort_by(|a, b| b.0.total_cmp(&a.0));
    wasteful.into_iter().map(|(_, row)| row).collect()
}

/// The smallest move that saves nearly as much as the best of a bill.
pub fn best<T>(moves: Vec<(Proposal, T)>, bill_per_hour: f64) -> Option<(Proposal, T)> {
    let savings = moves.iter().map(|it| it.0.savings_per_hour());
    let most = savings.max_by(f64::total_cmp)?;
    let is_enough = |it: &Proposal| {
        let saved = it.savings_per_hour();
        saved >= most * ENOUGH && bill_per_hour - saved <= (bill_per_hour - most) * LEFT_MAX
    };
    let enough = moves.into_iter().filter(|it| is_enough(&it.0));
    enough.min_by_key(|it| it.0.rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Cost, Manner};
    use crate::method::Method;

    #[test]
    fn halving_keeps_the_longest_run_that_works() {
        let rows: Vec<usize> = (0..5).collect();
        let mut tried = Vec::new();
        let found = search(&rows, |first| {
            tried.push(first.len());
            (first.len() <= 3).then(|| Proposal {
                manner: Manner::default(),
                method: Method::MultiNodeConsolidation,
                rows: first.to_vec(),
                replacements: Vec::new(),
                destinations: Vec::new(),
                before: Cost::at_list_price(0.0),
                after: Cost::at_list_price(0.0),
            })
        });
        assert_eq!(tried, [3, 4]);
        assert_eq!(found.last().unwrap().rows, [0, 1, 2]);
    }

    #[test]
    fn one_node_is_no_matter_for_it() {
        assert!(search(&[0], |_| unreachable!()).is_empty());
    }
}
