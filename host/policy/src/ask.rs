//! Putting a round's question to a policy, whatever answers it: a component in a fresh instance, or a
//! rule. What may be known without asking is not asked; what somebody records is recorded.

use std::time::Instant;

use disruption::hooks::{BudgetRound, ConsolidationRound, Move, Verdict};
use scheduling::ranking::{ClaimView, RankRound, Ranking};

use crate::answer::{self, Allowed, RankQuestion};
use crate::binding::Mode;
use crate::call::{CallFailure, Called, Log, Session, call};
use crate::convert;
use crate::host::Inner;
use crate::limits::{CallLimits, Kind};
use crate::module::Module;
use crate::recording::{Answer, Question};
use crate::registry::{Bound, Program};
use crate::rule::{Ran, Rule};

impl Inner {
    /// The effective costs for some claims, starting from `prior`.
    pub(crate) fn ask_rank(
        &self,
        bound: &Bound,
        round: &RankRound,
        claims: &[&ClaimView],
        prior: &[f64],
    ) -> Called<Vec<Ranking>> {
        let known = self.remembered.answer(bound, claims, prior);
        let called = known.unwrap_or_else(|| {
            let called = self.ask_rank_anew(bound, round, claims, prior);
            self.remembered.keep(bound, claims, prior, &called);
            called
        });
        let question = || {
            let round = RankRound {
                claims: claims.iter().map(|claim| (*claim).clone()).collect(),
                ..round.clone()
            };
            let prior = prior.to_vec();
            (round.decision_id.clone(), Question::Rank { round, prior })
        };
        let answer = |it: &Vec<Ranking>| Answer::Rank(it.clone());
        self.recording.call(bound, &called, question, answer);
        called
    }

    /// As [`ask_rank`](Self::ask_rank), whatever was answered before.
    pub(crate) fn ask_rank_anew(
        &self,
        bound: &Bound,
        round: &RankRound,
        claims: &[&ClaimView],
        prior: &[f64],
    ) -> Called<Vec<Ranking>> {
        let limits = self.limits_of(bound, Kind::Rank);
        match &bound.program {
            Program::Component(module) => self.ask_module((module, bound), limits, |session| {
                let question = RankQuestion {
                    context: &convert::rank_context(round),
                    table: &round.table,
                    prior,
                    claims,
                };
                answer::rank(session, question)
            }),
            Program::Rule(rule) => {
                ask_rule(rule, |rule| rule.rank(round, claims, prior, limits.fuel))
            }
        }
    }

    /// The order in which to try nodes.
    pub(crate) fn ask_order(&self, bound: &Bound, round: &ConsolidationRound) -> Called<Vec<f64>> {
        let called = self.ask_order_anew(bound, round);
        let question = || {
            let round = round.clone();
            (round.context.decision_id.clone(), Question::Order { round })
        };
        let answer = |it: &Vec<f64>| Answer::Order(it.clone());
        self.recording.call(bound, &called, question, answer);
        called
    }

    /// As [`ask_order`](Self::ask_order), kept nowhere.
    pub(crate) fn ask_order_anew(
        &self,
        bound: &Bound,
        round: &ConsolidationRound,
    ) -> Called<Vec<f64>> {
        let limits = self.limits_of(bound, Kind::Consolidation);
        match &bound.program {
            Program::Component(module) => self.ask_module((module, bound), limits, |session| {
                answer::order(session, round)
            }),
            Program::Rule(rule) => ask_rule(rule, |_| crate::rule::Rule::order(round)),
        }
    }

    /// The verdicts on moves.
    pub(crate) fn ask_judge(
        &self,
        bound: &Bound,
        round: &ConsolidationRound,
        moves: &[Move],
    ) -> Called<Vec<Verdict>> {
        let called = self.ask_judge_anew(bound, round, moves);
        let question = || {
            let (round, moves) = (round.clone(), moves.to_vec());
            let decision_id = round.context.decision_id.clone();
            (decision_id, Question::Judge { round, moves })
        };
        let answer = |it: &Vec<Verdict>| Answer::Judge(it.clone());
        self.recording.call(bound, &called, question, answer);
        called
    }

    /// As [`ask_judge`](Self::ask_judge), kept nowhere.
    pub(crate) fn ask_judge_anew(
        &self,
        bound: &Bound,
        round: &ConsolidationRound,
        moves: &[Move],
    ) -> Called<Vec<Verdict>> {
        let limits = self.limits_of(bound, Kind::Consolidation);
        match &bound.program {
            Program::Component(module) => self.ask_module((module, bound), limits, |session| {
                answer::judge(session, round, moves)
            }),
            Program::Rule(rule) => ask_rule(rule, |rule| rule.judge(round, moves, limits.fuel)),
        }
    }

    /// The allowances of pools.
    pub(crate) fn ask_allow(&self, bound: &Bound, round: &BudgetRound) -> Called<Allowed> {
        let called = self.ask_allow_anew(bound, round);
        let question = || {
            let round = round.clone();
            (round.context.decision_id.clone(), Question::Allow { round })
        };
        let answer = |it: &Allowed| Answer::Allow {
            items: it.items.clone(),
            valid_for_seconds: it.valid_for_seconds,
        };
        self.recording.call(bound, &called, question, answer);
        called
    }

    /// As [`ask_allow`](Self::ask_allow), kept nowhere.
    pub(crate) fn ask_allow_anew(&self, bound: &Bound, round: &BudgetRound) -> Called<Allowed> {
        let limits = self.limits_of(bound, Kind::Budgets);
        match &bound.program {
            Program::Component(module) => self.ask_module((module, bound), limits, |session| {
                answer::allow(session, round)
            }),
            Program::Rule(rule) => ask_rule(rule, |rule| rule.allow(round, limits.fuel)),
        }
    }

    fn limits_of(&self, bound: &Bound, kind: Kind) -> CallLimits {
        let limits = self.limits.of(kind);
        if bound.is_on_trial {
            limits.patient()
        } else if bound.mode == Mode::Shadow {
            limits.halved()
        } else {
            limits
        }
    }

    /// One call in a fresh, configured instance.
    fn ask_module<T>(
        &self,
        (module, bound): (&Module, &Bound),
        limits: CallLimits,
        question: impl FnOnce(&mut Session<'_>) -> Result<T, CallFailure>,
    ) -> Called<T> {
        call(module, self.grant(limits), |session| {
            session.configure(&bound.config)?;
            question(session)
        })
    }
}

fn ask_rule<T>(rule: &Rule, ask: impl FnOnce(&Rule) -> Ran<T>) -> Called<T> {
    let started = Instant::now();
    let Ran { result, fuel } = ask(rule);
    Called {
        result,
        fuel,
        duration: started.elapsed(),
        log: Log::default(),
    }
}
