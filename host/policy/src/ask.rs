//! Putting a round's question to a policy, whatever answers it: a component in a fresh instance, or a
//! rule. What may be known without asking is not asked; what somebody records is recorded.

use std::borrow::Cow;
use std::time::Instant;

use hooks::binding::Mode;
use hooks::disruption::{BudgetRound, ConsolidationRound, Move, Verdict};
use hooks::policy_use::PolicyKind;
use hooks::ranking::{ClaimView, OfferingTable, RankRound, RankStage, Ranking};

use crate::active_policy::{ActivePolicy, Program};
use crate::answer::{self, Allowed};
use crate::call_context::CallContext;
use crate::guest::call::{Session, call};
use crate::guest::call_failure::CallFailure;
use crate::guest::called::{Called, Log};
use crate::guest::limits::CallLimits;
use crate::guest::module::Module;
use crate::host::HostState;
use crate::interface::exchange::{JudgeAsk, RankAsk, Remembering};
use crate::recording::{AskedPolicy, RecordedAnswer, RecordedQuestion};
use crate::rule::{PolicyRule, Ran};

/// Who is asked, and as what.
#[derive(Clone, Copy)]
struct Asking<'a> {
    policy: &'a ActivePolicy,
    kind: PolicyKind,
    /// Whether its next call is told what this one wants to remember.
    keeps_memory: bool,
}

impl<'a> Asking<'a> {
    fn of(policy: &'a ActivePolicy, kind: PolicyKind) -> Self {
        Self {
            policy,
            kind,
            keeps_memory: true,
        }
    }
}

impl HostState {
    /// The effective costs for some claims, starting from `prior`.
    pub(crate) fn ask_rank(
        &self,
        policy: &ActivePolicy,
        round: &RankRound,
        claims: &[&ClaimView],
        prior: &[f64],
    ) -> Called<Vec<Ranking>> {
        let ask = |memory: &[u8]| {
            let known = self.remembered.answer(policy, claims, prior);
            known.unwrap_or_else(|| {
                let ask = RankAsk {
                    round,
                    claims,
                    prior,
                };
                let called = self.ask_rank_anew(policy, ask, memory);
                self.remembered.keep(policy, claims, prior, &called);
                called
            })
        };
        let question = || {
            let round = RankRound {
                claims: claims.iter().map(|claim| (*claim).clone()).collect(),
                ..round.clone()
            };
            let prior = prior.to_vec();
            (
                round.decision_id.clone(),
                RecordedQuestion::Rank { round, prior },
            )
        };
        // Calls before packing follow one another; launches run beside them.
        let keeps_memory = claims.iter().any(|claim| claim.stage == RankStage::Packing);
        let asking = Asking {
            policy,
            kind: PolicyKind::Rank,
            keeps_memory,
        };
        self.recorded(asking, ask, question, |it| RecordedAnswer::Rank(it.clone()))
    }

    /// Asks for a ranking, whatever was answered before.
    pub(crate) fn ask_rank_anew(
        &self,
        policy: &ActivePolicy,
        ask: RankAsk<'_>,
        memory: &[u8],
    ) -> Called<Remembering<Vec<Ranking>>> {
        let limits = self.limits_of(policy, PolicyKind::Rank);
        let mut call = CallContext::rank(policy, ask.round, memory);
        match &policy.program {
            Program::Component(module) => self.ask_module(module, policy, limits, |session| {
                answer::rank(session, &call, ask)
            }),
            Program::Rule(rule) => {
                let round = with_rates(ask.round, call.rates.take());
                let ask = RankAsk {
                    round: &round,
                    ..ask
                };
                ask_rule(rule, |rule| rule.rank(ask, &call.context, limits.fuel))
            }
        }
    }

    /// The order in which to try nodes.
    pub(crate) fn ask_order(
        &self,
        policy: &ActivePolicy,
        round: &ConsolidationRound,
    ) -> Called<Vec<f64>> {
        let ask = |memory: &[u8]| self.ask_order_anew(policy, round, memory);
        let question = || {
            let round = round.clone();
            (
                round.context.decision_id.clone(),
                RecordedQuestion::Order { round },
            )
        };
        let asking = Asking::of(policy, PolicyKind::Consolidation);
        self.recorded(asking, ask, question, |it| {
            RecordedAnswer::Order(it.clone())
        })
    }

    /// Asks for the order of nodes, keeping the answer nowhere.
    pub(crate) fn ask_order_anew(
        &self,
        policy: &ActivePolicy,
        round: &ConsolidationRound,
        memory: &[u8],
    ) -> Called<Remembering<Vec<f64>>> {
        let limits = self.limits_of(policy, PolicyKind::Consolidation);
        match &policy.program {
            Program::Component(module) => {
                let call = CallContext::consolidation(policy, round, memory);
                let called = self.ask_module(module, policy, limits, |session| {
                    answer::order(session, &call, round)
                });
                called.map(|answer| Remembering {
                    answer,
                    memory: None,
                })
            }
            Program::Rule(rule) => ask_rule(rule, |_| crate::rule::PolicyRule::order(round)),
        }
    }

    /// The verdicts on moves.
    pub(crate) fn ask_judge(
        &self,
        policy: &ActivePolicy,
        round: &ConsolidationRound,
        moves: &[Move],
    ) -> Called<Vec<Verdict>> {
        let ask = |memory: &[u8]| self.ask_judge_anew(policy, JudgeAsk { round, moves }, memory);
        let question = || {
            let (round, moves) = (round.clone(), moves.to_vec());
            let decision_id = round.context.decision_id.clone();
            (decision_id, RecordedQuestion::Judge { round, moves })
        };
        let asking = Asking::of(policy, PolicyKind::Consolidation);
        self.recorded(asking, ask, question, |it| {
            RecordedAnswer::Judge(it.clone())
        })
    }

    /// Asks for verdicts on moves, keeping the answer nowhere.
    pub(crate) fn ask_judge_anew(
        &self,
        policy: &ActivePolicy,
        ask: JudgeAsk<'_>,
        memory: &[u8],
    ) -> Called<Remembering<Vec<Verdict>>> {
        let limits = self.limits_of(policy, PolicyKind::Consolidation);
        let call = CallContext::consolidation(policy, ask.round, memory);
        match &policy.program {
            Program::Component(module) => self.ask_module(module, policy, limits, |session| {
                answer::judge(session, &call, ask)
            }),
            Program::Rule(rule) => {
                ask_rule(rule, |rule| rule.judge(ask, &call.context, limits.fuel))
            }
        }
    }

    /// The allowances of pools.
    pub(crate) fn ask_allow(&self, policy: &ActivePolicy, round: &BudgetRound) -> Called<Allowed> {
        let ask = |memory: &[u8]| self.ask_allow_anew(policy, round, memory);
        let question = || {
            let round = round.clone();
            (
                round.context.decision_id.clone(),
                RecordedQuestion::Allow { round },
            )
        };
        let answer = |it: &Allowed| RecordedAnswer::Allow {
            items: it.items.clone(),
            valid_for_seconds: it.valid_for_seconds,
        };
        let asking = Asking::of(policy, PolicyKind::Budgets);
        self.recorded(asking, ask, question, answer)
    }

    /// Asks for the budgets, keeping the answer nowhere.
    pub(crate) fn ask_allow_anew(
        &self,
        policy: &ActivePolicy,
        round: &BudgetRound,
        memory: &[u8],
    ) -> Called<Remembering<Allowed>> {
        let limits = self.limits_of(policy, PolicyKind::Budgets);
        let call = CallContext::budgets(policy, round, memory);
        match &policy.program {
            Program::Component(module) => self.ask_module(module, policy, limits, |session| {
                answer::allow(session, &call, round)
            }),
            Program::Rule(rule) => {
                ask_rule(rule, |rule| rule.allow(round, &call.context, limits.fuel))
            }
        }
    }

    /// One call as a cluster makes it: the policy is told what it remembers, and what somebody records is recorded.
    fn recorded<T>(
        &self,
        asking: Asking<'_>,
        ask: impl FnOnce(&[u8]) -> Called<Remembering<T>>,
        question: impl FnOnce() -> (String, RecordedQuestion),
        answer: impl FnOnce(&T) -> RecordedAnswer,
    ) -> Called<T> {
        let Asking {
            policy,
            kind,
            keeps_memory,
        } = asking;
        let memory = self.memories.of(policy, kind);
        let called = ask(&memory);
        let asked = AskedPolicy {
            policy,
            memory: &memory,
        };
        self.recording.call(asked, &called, question, answer);
        if keeps_memory && let Ok(answered) = &called.result {
            self.memories.keep(policy, kind, answered.memory.as_ref());
        }
        called.map(|it| it.answer)
    }

    fn limits_of(&self, policy: &ActivePolicy, kind: PolicyKind) -> CallLimits {
        let limits = self.limits.of(kind);
        if policy.is_on_trial {
            limits.extended()
        } else if policy.mode == Mode::Shadow {
            limits.halved()
        } else {
            limits
        }
    }

    /// One call in a fresh, configured instance.
    fn ask_module<T>(
        &self,
        module: &Module,
        policy: &ActivePolicy,
        limits: CallLimits,
        question: impl FnOnce(&mut Session<'_>) -> Result<T, CallFailure>,
    ) -> Called<T> {
        call(module, self.grant(limits), |session| {
            session.configure(&policy.config)?;
            question(session)
        })
    }
}

/// The round with a binding's own interruption rates.
fn with_rates(round: &RankRound, rates: Option<Vec<f64>>) -> Cow<'_, RankRound> {
    match rates {
        None => Cow::Borrowed(round),
        Some(interruption_rate) => Cow::Owned(RankRound {
            table: OfferingTable {
                interruption_rate,
                ..round.table.clone()
            },
            ..round.clone()
        }),
    }
}

fn ask_rule<T>(
    rule: &PolicyRule,
    ask: impl FnOnce(&PolicyRule) -> Ran<T>,
) -> Called<Remembering<T>> {
    let started = Instant::now();
    let Ran { result, fuel } = ask(rule);
    let remembering = |answer| Remembering {
        answer,
        memory: None,
    };
    Called {
        result: result.map(remembering),
        fuel,
        duration: started.elapsed(),
        log: Log::default(),
    }
}
