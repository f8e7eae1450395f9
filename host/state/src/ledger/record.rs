//! The kinds of record, slim enough to keep tens of thousands of lines.
//!
//! Pods are written `namespace/name`. A record never holds a wall duration and never repeats an input
//! that the cluster's objects already tell.

mod disruption;
mod provisioning;

use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use serde::{Deserialize, Serialize};

use super::outcome::OutcomeId;
use super::subject::Subject;

pub use disruption::{CommandRecord, CommandStep, DisruptionRound, NodeOutcome};
pub use provisioning::{ClaimOutcome, PodGroupOutcome, PoolOutcome, ProvisioningRound};

/// One decision, or one step of carrying one out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Record {
    ProvisioningRound(ProvisioningRound),
    /// The result of a launch, or another step in a claim's life.
    Launch(LaunchStepRecord),
    /// A disruption scan.
    DisruptionRound(DisruptionRound),
    /// A step of a disruption command.
    Command(CommandRecord),
    /// A step of a node's termination.
    Termination(TerminationRecord),
    /// A pod that did not go where it was placed.
    Placement(PlacementRecord),
}

/// Where a pod went that was placed elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementRecord {
    /// Moment at which the pod was bound.
    pub at: Timestamp,
    /// The pod, `namespace/name`.
    pub pod: String,
    /// Outcome of the plan for the pod.
    pub outcome: OutcomeId,
    /// Node or claim that it was placed on.
    pub planned: String,
    /// Node that it was bound to.
    pub node: String,
}

/// A step in a claim's life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchStepRecord {
    /// Moment of the step.
    pub at: Timestamp,
    /// Name of the claim.
    pub claim: String,
    /// Name of the NodePool.
    pub pool: String,
    /// Name of the Node; empty while none is known.
    pub node: String,
    /// Outcome of the step.
    pub outcome: OutcomeId,
    /// The instance type that was launched; empty before.
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    /// List price of the instance, USD an hour; 0 before it is launched.
    pub price_per_hour: f64,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
    /// Policies that ordered the offerings.
    pub policies: Vec<PolicyUse>,
}

/// A step of a node's termination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminationRecord {
    /// Moment of the step.
    pub at: Timestamp,
    pub node: String,
    /// Name of the claim; empty without one.
    pub claim: String,
    /// NodePool; empty without one.
    pub pool: String,
    /// Outcome of the step.
    pub outcome: OutcomeId,
    /// Pods the step is about, `namespace/name`.
    pub pods: Vec<String>,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
}

impl Record {
    /// When the record was made.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::ProvisioningRound(it) => it.at,
            Self::Launch(it) => it.at,
            Self::DisruptionRound(it) => it.at,
            Self::Command(it) => it.at,
            Self::Termination(it) => it.at,
            Self::Placement(it) => it.at,
        }
    }

    /// Outcome of the one thing that the record is about; none of a round, which is about many.
    pub fn outcome(&self) -> Option<OutcomeId> {
        match self {
            Self::ProvisioningRound(_) | Self::DisruptionRound(_) => None,
            Self::Launch(it) => Some(it.outcome),
            Self::Command(it) => Some(it.outcome),
            Self::Termination(it) => Some(it.outcome),
            Self::Placement(it) => Some(it.outcome),
        }
    }

    /// Weight of the record in a bounded ledger.
    pub fn lines(&self) -> usize {
        1 + match self {
            Self::ProvisioningRound(it) => {
                let pods: usize = it.pods.iter().map(|group| 1 + group.pods.len()).sum();
                pods + it.pools.len() + it.claims.len()
            }
            Self::Launch(_) | Self::Placement(_) => 0,
            Self::DisruptionRound(it) => it.nodes.len(),
            Self::Command(it) => it.candidates.len() + it.replacements.len(),
            Self::Termination(it) => it.pods.len(),
        }
    }

    /// Whether the record says something about the subject.
    pub(crate) fn mentions(&self, subject: &Subject) -> bool {
        match self {
            Self::ProvisioningRound(it) => it.mentions(subject),
            Self::Launch(it) => match subject {
                Subject::Pod(_) => false,
                Subject::Node(name) => it.node == *name,
                Subject::Claim(name) => it.claim == *name,
                Subject::Pool(name) => it.pool == *name,
            },
            Self::DisruptionRound(it) => match subject {
                Subject::Pool(name) => it.nodes.iter().any(|node| node.is_of_pool(name)),
                Subject::Pod(_) | Subject::Node(_) | Subject::Claim(_) => {
                    it.nodes.iter().any(|node| node.is_about(subject))
                }
            },
            Self::Command(it) => match subject {
                Subject::Pod(_) | Subject::Pool(_) => false,
                Subject::Node(name) => it.candidates.contains(name),
                Subject::Claim(name) => {
                    it.replacements.contains(name) || it.candidate_claims.contains(name)
                }
            },
            Self::Termination(it) => match subject {
                Subject::Pod(key) => it.pods.contains(key),
                Subject::Node(name) => it.node == *name,
                Subject::Claim(name) => it.claim == *name,
                Subject::Pool(name) => it.pool == *name,
            },
            Self::Placement(it) => match subject {
                Subject::Pod(key) => it.pod == *key,
                Subject::Node(name) => it.planned == *name || it.node == *name,
                Subject::Claim(name) => it.planned == *name,
                Subject::Pool(_) => false,
            },
        }
    }
}
