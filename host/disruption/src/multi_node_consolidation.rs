//! Multi-node consolidation: the longest run of nodes, in the policy's order, that can go together.
//!
//! The run is found by halving, because the more nodes go the less likely their pods still fit. Answers
//! to Karpenter's `disruption/multinodeconsolidation.go`.

use crate::command::Proposal;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::Method;

    #[test]
    fn halving_keeps_the_longest_run_that_works() {
        let rows: Vec<usize> = (0..5).collect();
        let mut tried = Vec::new();
        let found = search(&rows, |first| {
            tried.push(first.len());
            (first.len() <= 3).then(|| Proposal {
                method: Method::MultiNodeConsolidation,
                rows: first.to_vec(),
                replacements: Vec::new(),
                destinations: Vec::new(),
                cost_before_per_hour: 0.0,
                cost_after_per_hour: 0.0,
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
