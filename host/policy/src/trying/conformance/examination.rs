//! One made-up round put to a policy, twice where the answers must be the same, and what must be true of the answer.

use std::cmp::Ordering;

use hooks::disruption::{BudgetRound, ConsolidationRound, Move, MoveKind, VerdictDecision};
use hooks::ranking::{ClaimView, RankRound, Ranking};

use super::Conformance;
use super::fault::ConformanceFault;
use crate::active_policy::ActivePolicy;
use crate::guest::call_failure::CallFailure;
use crate::guest::called::Called;
use crate::host::HostState;
use crate::interface::exchange::{JudgeAsk, RankAsk, Remembering};

/// What a row's cost did over the rounds when its price rose.
#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) rose: u32,
    /// The round in which it fell first.
    pub(super) first_fall: Option<MadeUpRound>,
}

/// A round that was made up.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeUpRound {
    pub(super) number: u32,
    /// Rows of its table.
    pub(super) rows: u32,
}

pub(super) struct Examination<'a> {
    pub(super) host: &'a HostState,
    pub(super) policy: &'a ActivePolicy,
    pub(super) memory: &'a mut Vec<u8>,
    pub(super) found: &'a mut Conformance,
    pub(super) response: &'a mut Response,
    pub(super) at: MadeUpRound,
}

impl Examination<'_> {
    pub(super) fn rank(mut self, round: &RankRound) -> Result<(), ConformanceFault> {
        let again = RankRound {
            decision_id: "again".to_owned(),
            ..round.clone()
        };
        let (host, policy) = (self.host, self.policy);
        let memory = self.memory.clone();
        let ask = |round: &RankRound| {
            let claims: Vec<&ClaimView> = round.claims.iter().collect();
            host.ask_rank_anew(policy, RankAsk::of(round, &claims), &memory)
        };
        let Some(answer) = self.equal(ask(round), ask(&again))? else {
            return Ok(());
        };
        // Dearer in the table, cheaper for the policy: allowed, and rarely meant.
        let Some(row) = round.table.price.len().checked_sub(1) else {
            return Ok(());
        };
        let mut costlier = again;
        for column in [&mut costlier.table.price, &mut costlier.table.prior] {
            if let Some(price) = column.get_mut(row) {
                *price += 1.0;
            }
        }
        let score = |answer: &[Ranking]| answer.first().and_then(|it| it.scores.get(row).copied());
        let Ok(after) = ask(&costlier).result else {
            return Ok(());
        };
        match score(&after.answer).partial_cmp(&score(&answer)) {
            Some(Ordering::Less) => {
                self.response.first_fall.get_or_insert(self.at);
                self.found
                    .notes
                    .push("a higher price lowered the cost of a row".to_owned());
            }
            Some(Ordering::Greater) => self.response.rose += 1,
            Some(Ordering::Equal) | None => {}
        }
        Ok(())
    }

    pub(super) fn consolidation(
        mut self,
        round: &ConsolidationRound,
        moves: &[Move],
    ) -> Result<(), ConformanceFault> {
        let mut again = round.clone();
        "again".clone_into(&mut again.context.decision_id);
        let (host, policy) = (self.host, self.policy);
        let memory = self.memory.clone();
        self.equal(
            host.ask_order_anew(policy, round, &memory),
            host.ask_order_anew(policy, &again, &memory),
        )?;
        let judge = |round| host.ask_judge_anew(policy, JudgeAsk { round, moves }, &memory);
        let judged = self.equal(judge(round), judge(&again))?;
        let is_costlier = judged.is_some_and(|verdicts| {
            let mut pairs = verdicts.iter().zip(moves);
            pairs.any(|(verdict, it)| {
                verdict.decision == VerdictDecision::Approve
                    && matches!(it.kind, MoveKind::Replace)
                    && it.effective_after > it.effective_before
            })
        });
        if is_costlier {
            self.found
                .notes
                .push("approves replacements that cost more than what they replace".to_owned());
        }
        Ok(())
    }

    pub(super) fn budgets(mut self, round: &BudgetRound) -> Result<(), ConformanceFault> {
        let mut again = round.clone();
        "again".clone_into(&mut again.context.decision_id);
        let (host, policy) = (self.host, self.policy);
        let memory = self.memory.clone();
        self.equal(
            host.ask_allow_anew(policy, round, &memory),
            host.ask_allow_anew(policy, &again, &memory),
        )?;
        Ok(())
    }

    /// The answer, when both are there and the same; nothing when the policy is short of data.
    fn equal<T: PartialEq>(
        &mut self,
        first: Called<Remembering<T>>,
        second: Called<Remembering<T>>,
    ) -> Result<Option<T>, ConformanceFault> {
        self.found.fuel_most = self.found.fuel_most.max(first.fuel).max(second.fuel);
        match (first.result, second.result) {
            (Ok(first), Ok(second)) if first == second => {
                if let Some(memory) = first.memory {
                    *self.memory = memory;
                }
                Ok(Some(first.answer))
            }
            (
                Err(CallFailure::Refused {
                    transient: true, ..
                }),
                Err(_),
            ) => Ok(None),
            (Err(failure), _) => Err(failure.into()),
            (Ok(_), _) => Err(ConformanceFault::NotDeterministic),
        }
    }
}
