//! Differences between the decisions of two policies on the same rounds.
//!
//! Neither policy is told any memory, and nothing is noted of the calls.

use apis::ObjectKey;
use hooks::columns::{at, index, word};
use hooks::disruption::{BudgetRound, ConsolidationRound, Move};
use hooks::policy_use::PolicyKind;
use hooks::ranking::{ClaimView, RankRound};

use crate::active_policy::ActivePolicy;
use crate::guest::call_failure::CallFailure;
use crate::guest::called::Called;
use crate::hooks::first_choice;
use crate::host::{HostState, PolicyHost};
use crate::interface::exchange::{JudgeAsk, RankAsk, Remembering};
use crate::recording::RecordedQuestion;
use crate::trying::conformance;

/// How two policies differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Kind of policy that was asked.
    pub kind: PolicyKind,
    /// Number of rounds that both were asked.
    pub rounds: u32,
    /// Claims, moves, or pairs of pool and reason.
    pub asked: u32,
    /// Those with another answer: another first choice, another verdict, another number.
    pub different: u32,
    /// Price of the new first choices less that of the old ones.
    pub usd_per_hour: f64,
    /// One line for each difference.
    pub examples: Vec<String>,
}

/// A policy that has no answer to a round cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{which} has no answer to a {} round: {failure}", kind.as_str())]
pub struct CannotCompare {
    which: String,
    kind: PolicyKind,
    failure: CallFailure,
}

impl PolicyHost {
    /// Compares two bound policies on made-up rounds, for every kind that both are bound for.
    pub fn compare(
        &self,
        old: &ObjectKey,
        new: &ObjectKey,
        rounds: u32,
    ) -> Result<Vec<Difference>, CannotCompare> {
        let questions: Vec<RecordedQuestion> = PolicyKind::ALL
            .into_iter()
            .flat_map(|kind| (0..rounds).map(move |round| conformance::usual(kind, round)))
            .collect();
        self.compare_on(old, new, &questions)
    }

    /// Compares two bound policies on given rounds, for every kind that both are bound for.
    pub fn compare_on(
        &self,
        old: &ObjectKey,
        new: &ObjectKey,
        questions: &[RecordedQuestion],
    ) -> Result<Vec<Difference>, CannotCompare> {
        let (Some(old), Some(new)) = (self.inner.policy(old), self.inner.policy(new)) else {
            return Ok(Vec::new());
        };
        let kinds = old.kinds.iter().filter(|kind| new.kinds.contains(kind));
        kinds
            .map(|kind| {
                let mut pair = Pair {
                    host: &self.inner,
                    old: &old,
                    new: &new,
                    found: Difference {
                        kind: *kind,
                        rounds: 0,
                        asked: 0,
                        different: 0,
                        usd_per_hour: 0.0,
                        examples: Vec::new(),
                    },
                };
                for question in questions.iter().filter(|it| it.kind() == *kind) {
                    pair.found.rounds += 1;
                    match question {
                        RecordedQuestion::Rank { round, prior } => pair.rank(round, prior)?,
                        RecordedQuestion::Order { .. } => {}
                        RecordedQuestion::Judge { round, moves } => pair.judge(round, moves)?,
                        RecordedQuestion::Allow { round } => pair.allow(round)?,
                    }
                }
                Ok(pair.found)
            })
            .collect()
    }
}

struct Pair<'a> {
    host: &'a HostState,
    old: &'a ActivePolicy,
    new: &'a ActivePolicy,
    found: Difference,
}

impl Pair<'_> {
    fn both<T>(
        &self,
        ask: impl Fn(&ActivePolicy) -> Called<Remembering<T>>,
    ) -> Result<(T, T), CannotCompare> {
        let answer = |policy: &ActivePolicy| {
            let answered = ask(policy).result.map(|it| it.answer);
            answered.map_err(|failure| CannotCompare {
                which: policy.name.clone(),
                kind: self.found.kind,
                failure,
            })
        };
        Ok((answer(self.old)?, answer(self.new)?))
    }

    fn note(&mut self, is_different: bool, example: impl FnOnce() -> String) {
        self.found.asked += 1;
        if is_different {
            self.found.different += 1;
            self.found.examples.push(example());
        }
    }

    fn rank(&mut self, round: &RankRound, prior: &[f64]) -> Result<(), CannotCompare> {
        let claims: Vec<&ClaimView> = round.claims.iter().collect();
        let host = self.host;
        let ask = RankAsk {
            round,
            claims: &claims,
            prior,
        };
        let (old, new) = self.both(|policy| host.ask_rank_anew(policy, ask, &[]))?;
        for ((claim, old), new) in claims.iter().zip(old).zip(new) {
            let (before, after) = (
                first_choice(round, claim, &old),
                first_choice(round, claim, &new),
            );
            let table = &round.table;
            let price = |row: Option<u32>| row.map_or(0.0, |row| at(&table.price, row));
            if before.is_some() && after.is_some() {
                self.found.usd_per_hour += price(after) - price(before);
            }
            let named = |row: Option<u32>| match row {
                Some(row) => format!(
                    "{} in {} at {} USD/h",
                    word(&table.symbols, at(&table.instance_type, row)),
                    word(&table.symbols, at(&table.zone, row)),
                    at(&table.price, row)
                ),
                None => "nothing".to_owned(),
            };
            self.note(before != after, || {
                format!("{} becomes {}", named(before), named(after))
            });
        }
        Ok(())
    }

    fn judge(&mut self, round: &ConsolidationRound, moves: &[Move]) -> Result<(), CannotCompare> {
        let host = self.host;
        let (old, new) =
            self.both(|policy| host.ask_judge_anew(policy, JudgeAsk { round, moves }, &[]))?;
        for ((it, old), new) in moves.iter().zip(old).zip(new) {
            self.note(old.decision != new.decision, || {
                format!(
                    "{:?} of {} nodes saving {:.3} USD/h: {:?} becomes {:?} ({})",
                    it.kind,
                    it.remove.len(),
                    it.effective_before - it.effective_after,
                    old.decision,
                    new.decision,
                    new.reason
                )
            });
        }
        Ok(())
    }

    fn allow(&mut self, round: &BudgetRound) -> Result<(), CannotCompare> {
        let host = self.host;
        let (old, new) = self.both(|policy| host.ask_allow_anew(policy, round, &[]))?;
        for before in &old.items {
            let after = new
                .items
                .iter()
                .find(|it| (it.pool, it.reason) == (before.pool, before.reason));
            let allowed = after.map(|it| it.allowed);
            self.note(allowed != Some(before.allowed), || {
                let pool = round.pools.get(index(before.pool));
                format!(
                    "{} of {} nodes, {}: {} becomes {} ({})",
                    pool.map_or("", |pool| pool.name.as_str()),
                    pool.map_or(0, |pool| pool.total),
                    before.reason.as_str(),
                    before.allowed,
                    allowed.map_or_else(|| "no answer".to_owned(), |it| it.to_string()),
                    after.map_or("", |it| it.why.as_str())
                )
            });
        }
        Ok(())
    }
}
