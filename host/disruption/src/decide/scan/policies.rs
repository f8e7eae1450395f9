//! What policies are asked about the candidates, and what becomes of their answers.
//!
//! One call for the order, one for each batch of proposals; budgets are drawn on here too. Never decides
//! by itself: an answer that is missing approves nothing.

use std::collections::BTreeSet;

use state::ledger::OutcomeId;

use super::Scan;
use crate::budgets::Budgets;
use crate::command::Proposal;
use crate::consolidation::Obstacle;
use crate::hooks::{Verdict, VerdictDecision};
use crate::method::Method;
use crate::round::Round;

impl Scan<'_> {
    /// The rows in the policy's order; those it skips are left out.
    pub(super) fn ordered(&mut self, rows: &[usize]) -> Vec<usize> {
        if self.order.is_none() {
            self.order = Some(self.ask_order());
        }
        let mut order = self.order.clone().unwrap_or_default();
        let mut left: BTreeSet<usize> = rows.iter().copied().collect();
        order.retain(|row| left.remove(row));
        for row in left {
            self.note(row, Obstacle::new(OutcomeId::NodePolicySkipped, ""));
        }
        order
    }

    fn ask_order(&mut self) -> Vec<usize> {
        self.tabulate();
        let Some(round) = &self.round else {
            return Vec::new();
        };
        let mut answer = self.hooks.consolidation.order(&round.table);
        self.uses.append(&mut answer.uses);
        let mut order: Vec<(f64, usize)> = answer
            .keys
            .iter()
            .copied()
            .zip(0..self.candidates.len())
            .filter(|(key, _)| *key >= 0.0)
            .collect();
        // Candidates are in order of name, so equal keys fall back to it.
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, row)| row).collect()
    }

    /// The rows that the budgets leave room for, in order, and whether some had to stay out.
    pub(super) fn within(
        &mut self,
        rows: &[usize],
        method: Method,
        budgets: &mut Budgets,
    ) -> (Vec<usize>, bool) {
        let mut kept = Vec::new();
        for &row in rows {
            let Some(candidate) = self.candidates.get(row) else {
                continue;
            };
            let (pool, reason) = (candidate.pool().to_owned(), method.budget_reason());
            if budgets.take(&pool, reason) {
                kept.push(row);
            } else {
                let why = self.budgets.why(&pool, reason);
                self.note(row, Obstacle::new(OutcomeId::NodeBudgetExhausted, why));
            }
        }
        let is_limited = kept.len() < rows.len();
        (kept, is_limited)
    }

    /// Asks the policy once about all proposals; what it refuses is noted.
    pub(super) fn approved(&mut self, proposals: Vec<Proposal>) -> Vec<(Proposal, Verdict)> {
        if proposals.is_empty() {
            return Vec::new();
        }
        let now = self.input.options.now;
        self.tabulate();
        let Some(round) = &self.round else {
            return Vec::new();
        };
        let history = (self.input.history, now);
        let moves: Vec<_> = proposals
            .iter()
            .map(|it| round.describe(it, &self.candidates, self.input.snapshot, history))
            .collect();
        let mut answer = self.hooks.consolidation.judge(&round.table, &moves);
        self.uses.append(&mut answer.uses);
        let mut approved = Vec::new();
        // A missing verdict approves nothing.
        for (proposal, verdict) in proposals.into_iter().zip(answer.verdicts) {
            let refused = match verdict.decision {
                VerdictDecision::Approve => {
                    approved.push((proposal, verdict));
                    continue;
                }
                VerdictDecision::Reject => OutcomeId::NodePolicyRejected,
                VerdictDecision::Hold => OutcomeId::NodePolicyHeld,
            };
            if let [row] = proposal.rows.as_slice() {
                self.note(*row, Obstacle::new(refused, super::told(&verdict)));
                if refused == OutcomeId::NodePolicyHeld {
                    self.hold(*row, verdict.retry_after_seconds);
                }
            }
        }
        approved
    }

    fn hold(&mut self, row: usize, seconds: u32) {
        let pause = jiff::SignedDuration::from_secs(i64::from(seconds));
        let until = self.input.options.now.saturating_add(pause).ok();
        if let (Some(candidate), Some(until)) = (self.candidates.get(row), until) {
            self.memory
                .holds
                .insert(candidate.claim().to_owned(), until);
        }
    }

    fn tabulate(&mut self) {
        if self.round.is_none() {
            let (input, context) = (&self.input, self.context.clone());
            let now = input.options.now;
            let round = Round::new(input.snapshot, input.types, &self.candidates, context, now);
            self.round = Some(round);
        }
    }
}
