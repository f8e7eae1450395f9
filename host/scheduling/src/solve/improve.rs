//! Taking the worst nodes of a plan apart and planning their pods again, in another manner.
//!
//! A change is kept only if the bill shrinks, so no plan gets worse. The number of rounds is bounded by the size of
//! the plan, not by a clock, and everything is deterministic.

use super::Solver;
use super::cost_packing::Choice;
use super::fill::Item;
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
        plan
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
