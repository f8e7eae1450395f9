//! Calls as they were asked and answered.
//!
//! A recording is a list of lines: who a policy is comes before its first call. Modules are known by digest,
//! and whoever replays brings those that are not built in. How lines are bytes is in `recording/frames.rs`.

mod frames;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use hooks::binding::Mode;
use hooks::disruption::{Allowance, BudgetRound, ConsolidationRound, Move, Verdict};
use hooks::policy_use::PolicyKind;
use hooks::ranking::{RankRound, Ranking};
use locks::lock;
use serde::{Deserialize, Serialize};

use crate::active_policy::{ActivePolicy, Program};
use crate::guest::call_failure::CallFailure;
use crate::guest::called::Called;
use crate::interface::exchange::Remembering;
use crate::rule::source::RuleSource;

pub use frames::{RecordedLines, recording_files};

/// Where calls go. Called on the decision path, so it should be quick.
pub trait CallRecorder: Send + Sync {
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
    Call(Box<RecordedCall>),
}

/// Digests of a policy's code and of its settings: two policies that share both answer alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyIdentity {
    digest: String,
    config_digest: String,
}

impl PolicyIdentity {
    fn new(digest: &str, config_digest: &str) -> Self {
        Self {
            digest: digest.to_owned(),
            config_digest: config_digest.to_owned(),
        }
    }

    /// Of a policy in charge.
    pub(crate) fn of(policy: &ActivePolicy) -> Self {
        Self::new(policy.program.digest(), &policy.config_digest)
    }
}

/// A policy that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedPolicy {
    /// Name of the binding, or of the default.
    pub name: String,
    /// Digest of the component or rule.
    pub digest: String,
    /// Digest of the settings.
    pub config_digest: String,
    /// Settings of the policy, as JSON; empty without any.
    pub config: String,
    /// The expressions, when it is a rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<RuleSource>>,
    /// Facts beside the plain tables that it is told, by their words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Facts that its binding tells it, as written, by key.
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
    /// Fuel that the call spent.
    pub fuel: u64,
    /// Memory that it had answered before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<u8>,
    /// Input of the call.
    pub question: RecordedQuestion,
    /// Output of the call, or why there is none.
    pub answer: Result<RecordedAnswer, String>,
    /// Memory that it asks to be told the next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembers: Option<Vec<u8>>,
}

/// The input of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecordedQuestion {
    /// Of a ranking policy; the claims of the round are those that it was asked about.
    Rank {
        round: RankRound,
        /// Where the chain had come to.
        prior: Vec<f64>,
    },
    /// In which order to try nodes.
    Order { round: ConsolidationRound },
    /// Verdicts on moves.
    Judge {
        round: ConsolidationRound,
        moves: Vec<Move>,
    },
    /// How many nodes may be disrupted.
    Allow { round: BudgetRound },
}

impl RecordedQuestion {
    /// Kind of policy that the question is for.
    pub fn kind(&self) -> PolicyKind {
        match self {
            Self::Rank { .. } => PolicyKind::Rank,
            Self::Order { .. } | Self::Judge { .. } => PolicyKind::Consolidation,
            Self::Allow { .. } => PolicyKind::Budgets,
        }
    }
}

/// The output of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RecordedAnswer {
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
        /// Seconds after which the policy is to be asked again.
        valid_for_seconds: u32,
    },
}

/// Who was asked, and what it remembered.
#[derive(Clone, Copy)]
pub(crate) struct AskedPolicy<'a> {
    pub(crate) policy: &'a ActivePolicy,
    pub(crate) memory: &'a [u8],
}

/// Who is written to.
#[derive(Default)]
pub(crate) struct Recording {
    to: Mutex<Option<Arc<dyn CallRecorder>>>,
}

impl Recording {
    pub(crate) fn start(&self, recorder: Arc<dyn CallRecorder>) {
        *lock(&self.to) = Some(recorder);
    }

    /// Keeps a call, if anybody wants it.
    pub(crate) fn call<T>(
        &self,
        AskedPolicy { policy, memory }: AskedPolicy<'_>,
        called: &Called<Remembering<T>>,
        question: impl FnOnce() -> (String, RecordedQuestion),
        answer: impl FnOnce(&T) -> RecordedAnswer,
    ) {
        let to = lock(&self.to).clone();
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
            answer: given
                .map(|it| answer(&it.answer))
                .map_err(CallFailure::told),
            remembers: given.ok().and_then(|it| it.memory.clone()),
        });
        to.record(call, &|| RecordedPolicy::of(policy));
    }
}

impl RecordedPolicy {
    /// By which its calls name it.
    pub(crate) fn identity(&self) -> PolicyIdentity {
        PolicyIdentity::new(&self.digest, &self.config_digest)
    }

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
    pub fn identity(&self) -> PolicyIdentity {
        PolicyIdentity::new(&self.digest, &self.config_digest)
    }
}
