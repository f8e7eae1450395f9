//! Recorded calls asked again: whether policies still answer what they answered then.
//!
//! Time is not recorded, so that a call which passed its deadline then proves nothing now.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::ObjectKey;
use hooks::binding::{Authority, Mode, OnFailure};
use hooks::ranking::ClaimView;

use crate::active_policy::{ActivePolicy, Program};
use crate::binding::{BindingFacts, Scope};
use crate::builtin::BUILTINS;
use crate::digest::digest;
use crate::guest::call_failure::CallFailure;
use crate::guest::called::Called;
use crate::guest::module::Origin;
use crate::host::{HostState, PolicyHost};
use crate::interface::exchange::{JudgeAsk, RankAsk, Remembering};
use crate::load_error::LoadError;
use crate::needs::PolicyNeeds;
use crate::recording::{
    PolicyIdentity, RecordedAnswer, RecordedCall, RecordedLine, RecordedPolicy, RecordedQuestion,
};
use crate::rule::PolicyRule;

/// Result of asking again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Calls that gave the same bytes.
    pub equal: u64,
    /// Calls that ran into a deadline then: time is not recorded.
    pub untimely: u64,
    /// Calls of modules that are not at hand, by digest.
    pub missing: BTreeMap<String, u64>,
    /// A sentence for each call that gave something else.
    pub different: Vec<String>,
}

impl PolicyHost {
    /// Asks the calls of a recording again. `modules` are components that are not built in.
    pub fn replay(
        &self,
        lines: impl IntoIterator<Item = RecordedLine>,
        modules: &[Vec<u8>],
    ) -> Result<Replayed, LoadError> {
        let mut replay = Replay {
            host: &self.inner,
            modules: modules.iter().map(|it| (digest(it), &it[..])).collect(),
            policies: BTreeMap::new(),
            found: Replayed::default(),
        };
        for builtin in BUILTINS {
            let component = builtin.component();
            replay.modules.insert(digest(component), component);
        }
        for line in lines {
            match line {
                RecordedLine::Policy(policy) => {
                    replay.policies.insert(policy.identity(), policy);
                }
                RecordedLine::Call(call) => replay.call(&call)?,
            }
        }
        Ok(replay.found)
    }
}

struct Replay<'a> {
    host: &'a HostState,
    modules: BTreeMap<String, &'a [u8]>,
    policies: BTreeMap<PolicyIdentity, RecordedPolicy>,
    found: Replayed,
}

impl Replay<'_> {
    fn call(&mut self, call: &RecordedCall) -> Result<(), LoadError> {
        let Some(policy) = self.policy(call)? else {
            let missing = self.found.missing.entry(call.digest.clone());
            *missing.or_default() += 1;
            return Ok(());
        };
        let failure = call.answer.as_ref().err();
        if failure.is_some_and(|it| it.starts_with(CallFailure::DEADLINE)) {
            self.found.untimely += 1;
            return Ok(());
        }
        let Again {
            answer,
            remembers,
            fuel,
        } = self.host.ask_again(&policy, call);
        let bytes = |answer: &Result<RecordedAnswer, String>| serde_json::to_string(answer).ok();
        let what = if bytes(&answer) != bytes(&call.answer) {
            "another answer"
        } else if remembers != call.remembers {
            "the same answer with another memory"
        } else if call.fuel != 0 && fuel != call.fuel {
            "the same answer with other fuel"
        } else {
            self.found.equal += 1;
            return Ok(());
        };
        self.found.different.push(format!(
            "{} {} by {} ({}): {what}",
            call.question.kind().as_str(),
            call.decision_id,
            call.name,
            call.digest
        ));
        Ok(())
    }

    /// Who was asked then; nothing when its module is not at hand.
    fn policy(&self, call: &RecordedCall) -> Result<Option<ActivePolicy>, LoadError> {
        let Some(policy) = self.policies.get(&call.identity()) else {
            return Ok(None);
        };
        let kind = call.question.kind();
        let program = match (&policy.rule, self.modules.get(&policy.digest)) {
            (Some(rule), _) => Program::Rule(Arc::new(PolicyRule::compile(
                rule,
                &[kind],
                &policy.config,
            )?)),
            (None, Some(bytes)) => Program::Component(self.host.module(bytes, Origin::BuiltIn)?),
            (None, None) => return Ok(None),
        };
        Ok(Some(ActivePolicy {
            key: Some(ObjectKey {
                namespace: String::new(),
                name: policy.name.clone(),
            }),
            name: policy.name.clone(),
            kinds: vec![kind],
            mode: if call.is_shadow {
                Mode::Shadow
            } else {
                Mode::Enforce
            },
            scope: Scope::default(),
            order: 0,
            on_failure: OnFailure::Default,
            authority: Authority::Lower,
            program,
            config: policy.config.clone(),
            config_digest: policy.config_digest.clone(),
            needs: PolicyNeeds::parse(&policy.needs)?,
            facts: BindingFacts::parse(policy.facts.clone())?,
            is_on_trial: false,
        }))
    }
}

/// What came of asking again.
struct Again {
    answer: Result<RecordedAnswer, String>,
    /// Memory that it asks to be told the next time.
    remembers: Option<Vec<u8>>,
    fuel: u64,
}

impl HostState {
    fn ask_again(&self, policy: &ActivePolicy, call: &RecordedCall) -> Again {
        fn again<T>(
            called: Called<Remembering<T>>,
            answer: impl FnOnce(T) -> RecordedAnswer,
        ) -> Again {
            let Called { result, fuel, .. } = called;
            let (answer, remembers) = match result {
                Ok(Remembering {
                    answer: given,
                    memory,
                }) => (Ok(answer(given)), memory),
                Err(failure) => (Err(failure.told()), None),
            };
            Again {
                answer,
                remembers,
                fuel,
            }
        }
        let memory = &call.memory;
        match &call.question {
            RecordedQuestion::Rank { round, prior } => {
                let claims: Vec<&ClaimView> = round.claims.iter().collect();
                let ask = RankAsk {
                    round,
                    claims: &claims,
                    prior,
                };
                again(
                    self.ask_rank_anew(policy, ask, memory),
                    RecordedAnswer::Rank,
                )
            }
            RecordedQuestion::Order { round } => again(
                self.ask_order_anew(policy, round, memory),
                RecordedAnswer::Order,
            ),
            RecordedQuestion::Judge { round, moves } => again(
                self.ask_judge_anew(policy, JudgeAsk { round, moves }, memory),
                RecordedAnswer::Judge,
            ),
            RecordedQuestion::Allow { round } => {
                let called = self.ask_allow_anew(policy, round, memory);
                again(called, |allowed| RecordedAnswer::Allow {
                    items: allowed.items,
                    valid_for_seconds: allowed.valid_for_seconds,
                })
            }
        }
    }
}
