//! Calls as they were asked and answered, and asking them again: the same input must give the same bytes.
//!
//! A recording is a list of lines: who a policy is comes before its first call. Modules are known by digest,
//! and whoever replays brings those that are not built in. How lines are bytes is in `recording/frames.rs`.

mod frames;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use apis::ObjectKey;
use hooks::binding::{Authority, Mode, OnFailure};
use hooks::disruption::{Allowance, BudgetRound, ConsolidationRound, Move, Verdict};
use hooks::ranking::{ClaimView, RankRound, Ranking};
use serde::{Deserialize, Serialize};

use crate::active_policy::{ActivePolicy, Program};
use crate::binding::{BindingFacts, Scope};
use crate::builtin::BUILTINS;
use crate::call_failure::CallFailure;
use crate::called::Called;
use crate::digest::digest;
use crate::host::{Inner, PolicyHost};
use crate::interface::exchange::RankAsk;
use crate::interface::exchange::Remembering;
use crate::limits::Kind;
use crate::load_error::LoadError;
use crate::needs::PolicyNeeds;
use crate::rule::Rule;
use crate::rule::source::RuleSource;

pub use frames::{RecordedLines, recording_files};

/// Where calls go. Called on the decision path, so it should be quick.
pub trait Recorder: Send + Sync {
    /// Keeps a call. Before the first one of a policy, wherever a part of the recording that is read alone begins,
    /// it keeps `policy` as well, which tells who was asked.
    fn record(&self, call: Box<RecordedCall>, policy: &dyn Fn() -> RecordedPolicy);
}

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedLine {
    /// A policy that the calls after it name.
    Policy(RecordedPolicy),
    /// A call.
    Call(Box<RecordedCall>),
}

/// Who was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedPolicy {
    /// Name of the binding, or of the default.
    pub name: String,
    /// Digest of the component or rule.
    pub digest: String,
    /// Digest of the settings.
    pub config_digest: String,
    /// The settings.
    pub config: String,
    /// The expressions, when it is a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<RuleSource>>,
    /// What it is told beside the plain tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// What its binding tells it, as written, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

/// A call: the question, the answer, and what it took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedCall {
    /// Id of the decision.
    pub decision_id: String,
    /// Name of the binding, or of the default.
    pub name: String,
    /// Digest of the component or rule.
    pub digest: String,
    /// Digest of the settings.
    pub config_digest: String,
    /// Whether it only watched.
    pub is_shadow: bool,
    /// Fuel spent.
    pub fuel: u64,
    /// What it had answered as memory before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<u8>,
    /// What was asked.
    pub question: Question,
    /// What it answered, or why it did not.
    pub answer: Result<Answer, String>,
    /// What it wants to be told the next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembers: Option<Vec<u8>>,
}

/// The input of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Question {
    /// Of a ranking policy; the claims of the round are those that it was asked about.
    Rank {
        /// The round.
        round: RankRound,
        /// Where the chain had come to.
        prior: Vec<f64>,
    },
    /// In which order to try nodes.
    Order {
        /// The round.
        round: ConsolidationRound,
    },
    /// What to make of moves.
    Judge {
        /// The round.
        round: ConsolidationRound,
        /// The moves.
        moves: Vec<Move>,
    },
    /// How many nodes may be disrupted.
    Allow {
        /// The round.
        round: BudgetRound,
    },
}

impl Question {
    /// What kind of policy it is for.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Rank { .. } => Kind::Rank,
            Self::Order { .. } | Self::Judge { .. } => Kind::Consolidation,
            Self::Allow { .. } => Kind::Budgets,
        }
    }
}

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Answer {
    /// One for each claim.
    Rank(Vec<Ranking>),
    /// One for each node.
    Order(Vec<f64>),
    /// One for each move.
    Judge(Vec<Verdict>),
    /// Some for each pool.
    Allow {
        /// Nodes by pool and reason.
        items: Vec<Allowance>,
        /// For how long.
        valid_for_seconds: u32,
    },
}

/// What came of asking again.
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

/// Who was asked, and what it remembered.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) policy: &'a ActivePolicy,
    pub(crate) memory: &'a [u8],
}

/// Who is written to.
#[derive(Default)]
pub(crate) struct Recording {
    to: Mutex<Option<Arc<dyn Recorder>>>,
}

impl Recording {
    pub(crate) fn start(&self, recorder: Arc<dyn Recorder>) {
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
    }

    /// Keeps a call, if anybody wants it.
    pub(crate) fn call<T>(
        &self,
        Asked { policy, memory }: Asked<'_>,
        called: &Called<Remembering<T>>,
        question: impl FnOnce() -> (String, Question),
        answer: impl FnOnce(&T) -> Answer,
    ) {
        let to = self
            .to
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(to) = to else { return };
        let (decision_id, question) = question();
        let given = called.result.as_ref();
        let call = Box::new(RecordedCall {
            decision_id,
            name: policy.name.clone(),
            digest: policy.program.digest().to_owned(),
            config_digest: policy.config_digest.clone(),
            is_shadow: policy.mode == Mode::Shadow,
            fuel: called.fuel,
            memory: memory.to_vec(),
            question,
            answer: given.map(|it| answer(&it.answer)).map_err(outcome),
            remembers: given.ok().and_then(|it| it.memory.clone()),
        });
        to.record(call, &|| RecordedPolicy::of(policy));
    }
}

impl RecordedPolicy {
    fn of(policy: &ActivePolicy) -> Self {
        Self {
            name: policy.name.clone(),
            digest: policy.program.digest().to_owned(),
            config_digest: policy.config_digest.clone(),
            config: policy.config.clone(),
            rule: match &policy.program {
                Program::Rule(rule) => Some(Box::new(rule.source.clone())),
                Program::Component(_) => None,
            },
            needs: policy.needs.words(),
            facts: policy.facts.texts().clone(),
        }
    }
}

impl RecordedCall {
    /// Which policy was asked: that of the line with the same two digests.
    pub fn identity(&self) -> (String, String) {
        (self.digest.clone(), self.config_digest.clone())
    }
}

fn outcome(failure: &CallFailure) -> String {
    format!("{}: {failure}", failure.reason())
}

impl PolicyHost {
    /// Keeps every call from now on.
    pub fn record_to(&self, recorder: Arc<dyn Recorder>) {
        self.inner.recording.start(recorder);
    }

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
                    let identity = (policy.digest.clone(), policy.config_digest.clone());
                    replay.policies.insert(identity, policy);
                }
                RecordedLine::Call(call) => replay.call(&call)?,
            }
        }
        Ok(replay.found)
    }
}

struct Replay<'a> {
    host: &'a Inner,
    modules: BTreeMap<String, &'a [u8]>,
    policies: BTreeMap<(String, String), RecordedPolicy>,
    found: Replayed,
}

impl Replay<'_> {
    fn call(&mut self, call: &RecordedCall) -> Result<(), LoadError> {
        let timed_out = |answer: &Result<Answer, String>| matches!(answer, Err(outcome) if outcome.starts_with("DeadlineExceeded"));
        let Some(policy) = self.policy(call)? else {
            let missing = self.found.missing.entry(call.digest.clone());
            *missing.or_default() += 1;
            return Ok(());
        };
        if timed_out(&call.answer) {
            self.found.untimely += 1;
            return Ok(());
        }
        let (answer, remembers, fuel) = self.host.ask_again(&policy, call);
        let bytes = |answer: &Result<Answer, String>| serde_json::to_string(answer).ok();
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
            (Some(rule), _) => {
                Program::Rule(Arc::new(Rule::compile(rule, &[kind], &policy.config)?))
            }
            (None, Some(bytes)) => Program::Component(self.host.module(bytes, true)?),
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

/// What came of asking again: the answer, what it wants to be told the next time, and the fuel.
type Again = (Result<Answer, String>, Option<Vec<u8>>, u64);

impl Inner {
    fn ask_again(&self, policy: &ActivePolicy, call: &RecordedCall) -> Again {
        fn told<T>(called: Called<Remembering<T>>, answer: impl FnOnce(T) -> Answer) -> Again {
            let Called { result, fuel, .. } = called;
            match result {
                Ok(Remembering {
                    answer: given,
                    memory,
                }) => (Ok(answer(given)), memory, fuel),
                Err(failure) => (Err(outcome(&failure)), None, fuel),
            }
        }
        let memory = &call.memory;
        match &call.question {
            Question::Rank { round, prior } => {
                let claims: Vec<&ClaimView> = round.claims.iter().collect();
                let ask = RankAsk {
                    round,
                    claims: &claims,
                    prior,
                };
                told(self.ask_rank_anew(policy, ask, memory), Answer::Rank)
            }
            Question::Order { round } => {
                told(self.ask_order_anew(policy, round, memory), Answer::Order)
            }
            Question::Judge { round, moves } => told(
                self.ask_judge_anew(policy, (round, moves), memory),
                Answer::Judge,
            ),
            Question::Allow { round } => {
                let called = self.ask_allow_anew(policy, round, memory);
                told(called, |allowed| Answer::Allow {
                    items: allowed.items,
                    valid_for_seconds: allowed.valid_for_seconds,
                })
            }
        }
    }
}
