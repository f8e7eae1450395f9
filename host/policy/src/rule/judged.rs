//! Answers of consolidation and budgets rules: which moves go ahead, and how many nodes may go.
//!
//! A consolidation rule only narrows what the default approves, save for moves before a node expires, of which the
//! default approves none.

use hooks::disruption::{
    Allowance, BudgetReason, BudgetRound, ConsolidationHook, ConsolidationRound, Context,
    DefaultConsolidation, MoveKind, Verdict, VerdictDecision,
};

use super::facts::{MoveFacts, Owners, PoolFacts};
use super::{Judgement, PolicyRule, Ran, RuleExpressions, with_steps};
use crate::answer::Allowed;
use crate::guest::call_failure::CallFailure;
use crate::interface::exchange::JudgeAsk;

impl PolicyRule {
    pub(crate) fn order(round: &ConsolidationRound) -> Ran<Vec<f64>> {
        Ran {
            result: Ok(DefaultConsolidation.order(round).keys),
            fuel: 0,
        }
    }

    pub(crate) fn judge(
        &self,
        JudgeAsk { round, moves }: JudgeAsk<'_>,
        context: &Context,
        fuel: u64,
    ) -> Ran<Vec<Verdict>> {
        let mut verdicts = DefaultConsolidation.judge(round, moves).verdicts;
        with_steps(fuel, |steps| {
            let Judgement::Consolidation(expressions, judged) = &self.judgement else {
                return Err(self.of_another_kind());
            };
            let Some(condition) = &expressions.rule else {
                return Err(self.of_another_kind());
            };
            let owners = Owners::new(&round.workloads, &round.nodes.symbols);
            for (verdict, proposed) in verdicts.iter_mut().zip(moves) {
                // The default has nothing to say of nodes that are to go early, and leaves them alone.
                let is_early = proposed.kind == MoveKind::Expire;
                let is_open = is_early || verdict.decision == VerdictDecision::Approve;
                if !is_open || !judged.contains(proposed.kind) {
                    continue;
                }
                let facts = MoveFacts {
                    round,
                    proposed,
                    owners: &owners.of(&proposed.remove),
                    context,
                };
                let mut run = expressions.run(&facts, steps);
                match run.value(condition) {
                    Ok(value) if value.is_true() && is_early => {
                        verdict.decision = VerdictDecision::Approve;
                        verdict.reason = format!("the rule holds: {}", self.text);
                    }
                    Ok(value) if value.is_true() => {}
                    Ok(_) => {
                        let message = expressions.message(&mut run);
                        verdict.decision = VerdictDecision::Reject;
                        verdict.score = 0.0;
                        verdict.reason = message
                            .unwrap_or_else(|| format!("the rule does not hold: {}", self.text));
                    }
                    Err(error) => return Err(self.failure(error, steps)),
                }
            }
            Ok(verdicts)
        })
    }

    pub(crate) fn allow(&self, round: &BudgetRound, context: &Context, fuel: u64) -> Ran<Allowed> {
        with_steps(fuel, |steps| {
            let Judgement::Budgets(expressions) = &self.judgement else {
                return Err(self.of_another_kind());
            };
            let RuleExpressions {
                rule: Some(allowed),
                ..
            } = expressions
            else {
                return Err(self.of_another_kind());
            };
            let mut items = Vec::with_capacity(round.pools.len() * BudgetReason::JUDGED.len());
            for (index, pool) in (0_u32..).zip(&round.pools) {
                for reason in BudgetReason::JUDGED {
                    let facts = PoolFacts {
                        pools: &round.pools,
                        pool,
                        reason,
                        context,
                    };
                    let mut run = expressions.run(&facts, steps);
                    let value = match run.value(allowed) {
                        Ok(value) => value,
                        Err(error) => return Err(self.failure(error, steps)),
                    };
                    let message = expressions.message(&mut run);
                    items.push(Allowance {
                        pool: index,
                        reason,
                        // Of what is absent nothing is known: what is declared holds.
                        allowed: if value.is_absent() {
                            facts.declared()
                        } else {
                            whole_nodes(value.number())?
                        },
                        why: message.unwrap_or_else(|| self.summary()),
                        replaces_declared: false,
                    });
                }
            }
            Ok(Allowed {
                items,
                valid_for_seconds: 0,
            })
        })
    }
}

/// Part of a node is none; less than none is none.
fn whole_nodes(number: f64) -> Result<u32, CallFailure> {
    if number.is_nan() {
        return Err(CallFailure::InvalidAnswer(
            "the rule gives no number of nodes".to_owned(),
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range"
    )]
    let whole = number.clamp(0.0, f64::from(u32::MAX)) as u32;
    Ok(whole)
}
