//! What policies are asked about the candidates, and what becomes of their answers.
//!
//! One call for the order, one for each batch of proposals; budgets are drawn on here too. Never decides
//! by itself: an answer that is missing approves nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use state::ledger::OutcomeId;

use super::Scan;
use crate::candidate::Candidate;
use crate::command::Proposal;
use crate::consolidation::Obstacle;
use crate::hooks::{BudgetReason, Verdict, VerdictDecision};
use crate::method::Method;
use crate::round::{Facts, Round};
use crate::scored::ScoredMove;

/// The longest that a policy may hold a node back without being asked again.
const HOLD_SECONDS_MAX: u32 = 3_600;

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

    /// The first rows that the budgets allow to go together.
    pub(super) fn within(&mut self, rows: &[usize], method: Method) -> Vec<usize> {
        let mut left = self.budgets.clone();
        self.allowed(rows, method, |pool, reason| left.take(pool, reason))
    }

    /// The rows each of which might go by itself. One that cannot go in the end is not in the way of the others.
    pub(super) fn each_within(&mut self, rows: &[usize], method: Method) -> Vec<usize> {
        let left = self.budgets.clone();
        self.allowed(rows, method, |pool, reason| {
            left.remaining(pool, reason) > 0
        })
    }

    /// The rows whose pool the predicate allows; the others are told of their budget.
    fn allowed(
        &mut self,
        rows: &[usize],
        method: Method,
        mut is_allowed: impl FnMut(&str, BudgetReason) -> bool,
    ) -> Vec<usize> {
        let reason = method.budget_reason();
        let mut kept = Vec::new();
        for &row in rows {
            let pool = self.candidates.get(row).map(Candidate::pool);
            if pool.is_some_and(|pool| is_allowed(pool, reason)) {
                kept.push(row);
            } else {
                self.note(row, self.out_of_budget(row, method));
            }
        }
        kept
    }

    pub(super) fn out_of_budget(&self, row: usize, method: Method) -> Obstacle {
        let pool = self.candidates.get(row).map_or("", Candidate::pool);
        let why = self.budgets.why(pool, method.budget_reason());
        Obstacle::new(OutcomeId::NodeBudgetExhausted, why)
    }

    /// Whether these rows may go together.
    pub(super) fn admits(&self, rows: &[usize], method: Method) -> bool {
        let candidates = rows.iter().filter_map(|&row| self.candidates.get(row));
        let pools = candidates.map(Candidate::pool);
        self.budgets.admit(pools, method.budget_reason())
    }

    /// Asks the policy once about all proposals; what it refuses is noted.
    pub(super) fn approved(&mut self, proposals: Vec<Proposal>) -> Vec<(Proposal, Verdict)> {
        if proposals.is_empty() {
            return Vec::new();
        }
        self.tabulate();
        let Some(round) = &self.round else {
            return Vec::new();
        };
        let moves: Vec<_> = proposals
            .iter()
            .map(|it| round.describe(it, &self.candidates, self.input.snapshot))
            .collect();
        let mut answer = self.hooks.consolidation.judge(&round.table, &moves);
        self.uses.append(&mut answer.uses);
        let judged = proposals.iter().zip(&moves).zip(&answer.verdicts);
        let judged = judged.filter(|((it, _), _)| it.method.is_consolidation());
        self.scored.extend(
            judged.map(|(it, verdict)| ScoredMove::of(round, &self.candidates, it, verdict)),
        );
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
            }
            if refused == OutcomeId::NodePolicyHeld {
                for row in proposal.rows {
                    self.hold(row, verdict.retry_after_seconds);
                }
            }
        }
        approved
    }

    /// The policy's hold on a row, which is then told of it.
    pub(super) fn held(&mut self, row: usize) -> Option<Timestamp> {
        let claim = self.candidates.get(row)?.claim();
        let until = *self.memory.holds.get(claim)?;
        let obstacle = Obstacle::new(OutcomeId::NodePolicyHeld, format!("until {until}"));
        self.note(row, obstacle);
        Some(until)
    }

    fn hold(&mut self, row: usize, seconds: u32) {
        let seconds = seconds.min(HOLD_SECONDS_MAX);
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
            // The table shows what the ranking policy makes of the nodes.
            if self.simulator.is_none() && !self.remembers_costs() {
                self.prepare();
            }
            let facts = Facts {
                snapshot: self.input.snapshot,
                types: self.input.types,
                history: self.input.history,
                needs: self.hooks.consolidation.needs(),
                now: self.input.options.now,
            };
            let round = Round::new(&facts, &self.candidates, self.context.clone());
            self.round = Some(round);
        }
    }
}
