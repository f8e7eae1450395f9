//! Answers of the ledger about one object, told in order: how far it came, why no further, and what was done about it.
//!
//! Only selects and words what was recorded; never judges anew.

mod steps;
mod words;

use std::cmp::Ordering;

use jiff::Timestamp;
use scheduling::ranking::{PolicyKind, PolicyUse, UseOutcome};
use serde::{Deserialize, Serialize};

use super::Ledger;
use super::gate::NodeGate;
use super::outcome::OutcomeId;
use super::record::{NodeOutcome, Record};
use super::subject::Subject;
use steps::steps_of;

/// Steps that an answer tells at most.
const STEPS_MAX: usize = 20;

/// The answer to `mortise why`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// `node`, `pod`, `claim` or `nodepool`.
    pub kind: String,
    /// Its name; a pod's is `namespace/name`.
    pub name: String,
    /// Decisions about it, newest first.
    pub steps: Vec<WhyStep>,
    /// The gates that a node passes in a scan, and how far this one came in the last.
    pub funnel: Vec<ScanGate>,
}

/// One decision about the object, or one step of carrying one out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WhyStep {
    /// When it was first decided so.
    pub at: Timestamp,
    /// When it was last decided so.
    pub last_at: Timestamp,
    /// How often in a row.
    pub times: u32,
    /// Place in the ledger.
    pub sequence: u64,
    /// Which object, where the question was about several.
    pub about: String,
    /// Number of the outcome.
    pub code: u16,
    /// Outcome of the decision.
    pub outcome: OutcomeId,
    /// The outcome in words.
    pub meaning: String,
    /// Particulars that decided: the pod, the budget, the prices compared, the nearest miss.
    pub reason: String,
    /// Policies that took part, with the digest of their code.
    pub policies: Vec<PolicyUse>,
    /// Under which its policies know the decision; empty where none is asked.
    #[serde(default)]
    pub decision_id: String,
    /// Parts that policies had in the decision, as far as whoever runs them remembers; not part of the ledger.
    #[serde(default)]
    pub parts: Vec<PolicyPart>,
}

/// Part that one policy had in a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPart {
    /// Kind of policy that it was asked as.
    pub kind: PolicyKind,
    /// Name of the binding.
    pub name: String,
    /// Digest of the component.
    pub digest: String,
    /// Digest of its settings.
    pub config_digest: String,
    /// enforce, shadow or canary.
    pub mode: String,
    /// Place in the chain.
    pub order: i32,
    /// Whether the policy answered, or why not.
    pub outcome: UseOutcome,
    /// Change that its answer made beside those before it; empty for none.
    pub changed: String,
    /// The last lines it logged.
    pub log: Vec<String>,
}

/// A stage of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanGate {
    /// Condition that a node meets when it passes the gate.
    pub gate: String,
    /// How far the node came.
    pub result: GateResult,
}

/// How a node stands to a stage of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GateResult {
    /// It passed.
    #[serde(rename = "passed")]
    Passed,
    /// It came no further.
    #[serde(rename = "stopped")]
    Stopped,
    /// It was stopped before.
    #[serde(rename = "not reached")]
    NotReached,
}

impl Why {
    /// Looks an object up.
    pub fn of(ledger: &Ledger, subject: &Subject) -> Self {
        let (kind, name) = subject.words();
        let mut steps: Vec<WhyStep> = Vec::new();
        let mut funnel = Vec::new();
        for entry in ledger.about(subject).rev() {
            if steps.len() >= STEPS_MAX {
                break;
            }
            if let (Record::DisruptionRound(round), Subject::Node(_) | Subject::Claim(_)) =
                (&entry.record, subject)
                && funnel.is_empty()
            {
                let found = round.nodes.iter().find(|it| it.is_about(subject));
                funnel = found.map(funnel_of).unwrap_or_default();
            }
            steps.extend(steps_of(entry, subject));
        }
        steps.truncate(STEPS_MAX);
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            steps,
            funnel,
        }
    }
}

fn funnel_of(node: &NodeOutcome) -> Vec<ScanGate> {
    let stop = node.outcome.gate();
    let gates = NodeGate::ALL.iter().map(|gate| {
        let result = match stop.map(|stop| gate.cmp(&stop)) {
            None | Some(Ordering::Less) => GateResult::Passed,
            Some(Ordering::Equal) => GateResult::Stopped,
            Some(Ordering::Greater) => GateResult::NotReached,
        };
        ScanGate {
            gate: gate.question().to_owned(),
            result,
        }
    });
    gates.collect()
}
