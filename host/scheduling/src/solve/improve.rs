//! Taking the worst nodes of a plan apart and planning their pods again, in another manner.
//!
//! A change is kept only if the bill shrinks, so no plan gets worse. The number of rounds is bounded by the size of
//! the plan, not by a clock, and everything is deterministic.

use std::collections::BTreeMap;

use super::Solver;
use super::bitset::BitSet;
use super::cost_packing::Choice;
use super::fill::{Filling, Item, holds};
use super::vocabulary::add_times;
use crate::interrupt::Interrupt;

/// Share of the nodes taken apart, and the manner of filling, by round.
const ROUNDS: [(f64, f64); 8] = [
    (0.6, 1.5),
    (0.3, 0.0),
    (0.8, 0.25),
    (0.4, 3.0),
    (0.2, 1.0),
    (0.5, 0.1),
    (0.3, 2.0),
    (0.7, 0.75),
];
/// How many nodes, worst first, are offered for joining with another.
const MERGED_MAX: usize = 64;
/// Pairs of items and nodes that one solve may look at while improving.
const WORK_MAX: usize = 2_500_000;

impl Solver<'_> {
    /// The plan, or a cheaper one for the same pods.
    pub(super) fn improve(
        &mut self,
        mut plan: Vec<Choice>,
        items: &mut [Item],
        order: &[usize],
        interrupt: &Interrupt,
    ) -> Vec<Choice> {
        let rounds = WORK_MAX / (items.len() * plan.len()).max(1);
        for (share, size_weight) in ROUNDS.iter().take(rounds) {
            if interrupt.is_tripped() || plan.len() < 2 {
                break;
            }
            let before = items.to_vec();
            let (kept, dissolved) = Self::dissolve(&plan, items, *share);
            let planned = self.plan(items, order, *size_weight, interrupt);
            let is_complete = items
                .iter()
                .zip(&before)
                .all(|(a, b)| a.remaining == b.remaining);
            if is_complete && self.bill(&planned) + 1e-9 < self.bill(&dissolved) {
                plan = kept;
                plan.extend(planned);
            } else {
                items.clone_from_slice(&before);
            }
        }
        self.merge_pairs(plan, items)
    }

    /// Joins nodes in pairs where one node costs no more than the two: fewer nodes for the same bill.
    fn merge_pairs(&mut self, plan: Vec<Choice>, items: &[Item]) -> Vec<Choice> {
        let mut nodes: Vec<Option<Choice>> = plan.into_iter().map(Some).collect();
        let mut rows: Vec<BitSet> = nodes
            .iter()
            .flatten()
            .map(|c| self.rows_left(c.pool, items, &c.filling))
            .collect();
        let ratio = |at: usize| nodes[at].as_ref().map_or(0.0, |c| c.ratio);
        let mut worst: Vec<usize> = (0..nodes.len()).collect();
        worst.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)).then(a.cmp(b)));
        worst.truncate(MERGED_MAX);
        for at in worst {
            let mut best: Option<(usize, Choice, f64)> = None;
            for other in 0..nodes.len() {
                let (Some(a), Some(b)) = (&nodes[at], &nodes[other]) else {
                    continue;
                };
                if at == other || a.pool != b.pool || !rows[at].intersects(&rows[other]) {
                    continue;
                }
                let Some((joined, gain)) = self.joined(a, b, items, [&rows[at], &rows[other]])
                else {
                    continue;
                };
                if best.as_ref().is_none_or(|(.., known)| gain > known + 1e-9) {
                    best = Some((other, joined, gain));
                }
            }
            if let Some((other, joined, _)) = best {
                rows[at] = self.rows_left(joined.pool, items, &joined.filling);
                nodes[at] = Some(joined);
                nodes[other] = None;
            }
        }
        nodes.into_iter().flatten().collect()
    }

    /// The cheapest node for the pods of both, and what it saves; `None` if it would cost more.
    fn joined(
        &mut self,
        a: &Choice,
        b: &Choice,
        items: &[Item],
        [rows_a, rows_b]: [&BitSet; 2],
    ) -> Option<(Choice, f64)> {
        let pool = a.pool;
        let table = &self.pools[pool];
        let mut rows = rows_a.clone();
        rows.intersect(rows_b);
        let mut requests = self.dims.zero();
        for (index, count) in a.filling.picks.iter().chain(&b.filling.picks) {
            let count = i64::try_from(*count).unwrap_or(0);
            add_times(&mut requests, &items[*index].requests, count);
        }
        table.retain_fitting(&mut rows, &requests);
        let row = rows.first()?;
        let cost = table.rows[row].cost;
        let gain = table.rows[a.row].cost + table.rows[b.row].cost - cost;
        if gain < -1e-9 {
            return None;
        }
        let mut picks: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, count) in a.filling.picks.iter().chain(&b.filling.picks) {
            *picks.entry(*index).or_insert(0) += count;
        }
        let picks: Vec<(usize, usize)> = picks.into_iter().collect();
        let vocabulary = &mut self.vocabulary;
        let mut merge = |a, b| vocabulary.merge(a, b);
        if !holds(&self.pools[pool], items, (pool, row), &picks, &mut merge)
            || !self.keeps_min_values(pool, &rows)
        {
            return None;
        }
        let worth = a.filling.worth + b.filling.worth;
        let ratio = cost.max(1e-9) / worth.max(1e-12);
        Some((
            Choice {
                pool,
                row,
                filling: Filling { picks, worth },
                ratio,
            },
            gain,
        ))
    }

    /// Splits a plan into what stays and what is wasteful, and gives the pods of the latter back to the items.
    fn dissolve(plan: &[Choice], items: &mut [Item], share: f64) -> (Vec<Choice>, Vec<Choice>) {
        let is_bound = |choice: &Choice| {
            choice
                .filling
                .picks
                .iter()
                .any(|(item, _)| items[*item].shares_one_host)
        };
        let mut order: Vec<usize> = (0..plan.len()).filter(|at| !is_bound(&plan[*at])).collect();
        order.sort_by(|a, b| plan[*b].ratio.total_cmp(&plan[*a].ratio).then(a.cmp(b)));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a length is a length"
        )]
        let count = (plan.len() as f64 * share).ceil() as usize;
        let mut is_dissolved = vec![false; plan.len()];
        for at in order.into_iter().take(count) {
            is_dissolved[at] = true;
        }
        let (mut kept, mut dissolved) = (Vec::new(), Vec::new());
        for (choice, is_dissolved) in plan.iter().zip(is_dissolved) {
            if is_dissolved {
                for (item, count) in &choice.filling.picks {
                    items[*item].remaining += count;
                }
                dissolved.push(choice.clone());
            } else {
                kept.push(choice.clone());
            }
        }
        (kept, dissolved)
    }

    fn bill(&self, plan: &[Choice]) -> f64 {
        plan.iter()
            .map(|choice| self.pools[choice.pool].rows[choice.row].cost)
            .sum()
    }
}
