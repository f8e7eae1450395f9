//! The records of disruption: what a scan found of each node, and the steps of a command.
//!
//! Their fields are what the ledger's hash is made of: a name that there is none of is written as an empty one.

use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use serde::{Deserialize, Serialize};

use crate::ledger::outcome::OutcomeId;
use crate::ledger::subject::Subject;

/// One disruption scan: exactly one outcome per node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionRound {
    /// Moment of the scan.
    pub at: Timestamp,
    /// Identifier shared with the policy calls of the scan.
    pub decision_id: String,
    /// Every tracked node once.
    pub nodes: Vec<NodeOutcome>,
    /// Policies that took part.
    pub policies: Vec<PolicyUse>,
    /// Number of commands that were decided.
    pub commands: u32,
    /// Whether the scan was cut off.
    pub interrupted: bool,
}

impl DisruptionRound {
    /// Whether two scans found the same; when they were and their ids do not count.
    pub fn same_findings(&self, other: &Self) -> bool {
        let Self {
            at: _,
            decision_id: _,
            nodes,
            policies,
            commands,
            interrupted,
        } = self;
        *nodes == other.nodes
            && *policies == other.policies
            && *commands == other.commands
            && *interrupted == other.interrupted
    }
}

/// A node in a disruption scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOutcome {
    /// Node name, or the claim's while there is no node.
    pub node: String,
    /// NodeClaim, where it has one.
    #[serde(default, with = "empty_for_none")]
    pub claim: Option<String>,
    /// NodePool, where it belongs to one.
    #[serde(with = "empty_for_none")]
    pub pool: Option<String>,
    /// Outcome of the scan for the node.
    pub outcome: OutcomeId,
    /// Why, where the outcome alone does not tell: the pod, the PDB, the nearest miss.
    pub reason: String,
}

impl NodeOutcome {
    /// Whether the node belongs to the NodePool.
    pub(crate) fn is_of_pool(&self, pool: &str) -> bool {
        self.pool.as_deref() == Some(pool)
    }

    /// Whether the subject is the node or its claim.
    pub fn is_about(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Node(name) => self.node == *name,
            Subject::Claim(name) => self.claim.as_ref() == Some(name),
            Subject::Pod(_) | Subject::Pool(_) => false,
        }
    }
}

/// A step of a disruption command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRecord {
    /// Moment of the step.
    pub at: Timestamp,
    /// Identifier of the command, the same in all its steps.
    pub command_id: String,
    /// How far it got.
    pub step: CommandStep,
    /// Outcome of the step.
    pub outcome: OutcomeId,
    /// Unhealthy, Empty, Drifted or Underutilized.
    pub reason: String,
    /// Kind of command, such as `delete` or `replace`.
    pub decision: String,
    /// empty, multi, single or nothing.
    pub consolidation_type: String,
    /// Names of the nodes that go.
    pub candidates: Vec<String>,
    /// Names of the claims of these nodes.
    #[serde(default)]
    pub candidate_claims: Vec<String>,
    /// Names of the claims that come in their place.
    pub replacements: Vec<String>,
    /// USD an hour of what goes.
    pub cost_before_per_hour: f64,
    /// USD an hour of what comes.
    pub cost_after_per_hour: f64,
    /// Of what goes, as the ranking policy reckons.
    #[serde(default)]
    pub effective_before_per_hour: f64,
    /// Of what comes, as the ranking policy reckons.
    #[serde(default)]
    pub effective_after_per_hour: f64,
    /// Policy's reason, or the failure.
    pub detail: String,
}

/// How far a command got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandStep {
    /// Decided, waiting for validation.
    Decided,
    /// Candidates tainted, replacements created.
    Started,
    /// Replacements are not there yet.
    Waiting,
    /// Done, one way or the other.
    Finished,
}

/// A name on the wire, where none is an empty text.
mod empty_for_none {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "serde hands fields over by reference")]
    pub(super) fn serialize<S: Serializer>(
        name: &Option<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        name.as_deref().unwrap_or_default().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Some(name).filter(|it| !it.is_empty()))
    }
}
