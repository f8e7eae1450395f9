//! The kinds of record, slim enough to keep tens of thousands of lines.
//!
//! Pods are written `namespace/name`. A record never holds a wall duration and never repeats an input
//! that the cluster's objects already tell.

use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use serde::{Deserialize, Serialize};

use super::OutcomeId;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One decision, or one step of carrying one out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Record {
    /// A provisioning round.
    ProvisioningRound(ProvisioningRound),
    /// The result of a launch, or another step in a claim's life.
    Launch(LaunchRecord),
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
    /// When.
    pub at: Timestamp,
    /// The pod, `namespace/name`.
    pub pod: String,
    /// What came of it.
    pub outcome: OutcomeId,
    /// Node or claim that it was placed on.
    pub planned: String,
    /// Node that it was bound to.
    pub node: String,
}

/// What pods, pools and claims came to in one provisioning round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningRound {
    /// When.
    pub at: Timestamp,
    /// Identifier shared with the policy calls of the round.
    pub decision_id: String,
    /// Pods by outcome and destination.
    pub pods: Vec<PodGroupOutcome>,
    /// Every NodePool once.
    pub pools: Vec<PoolOutcome>,
    /// Claims opened.
    pub claims: Vec<ClaimOutcome>,
    /// Policies that took part.
    pub policies: Vec<PolicyUse>,
    /// Whether the round was cut off.
    pub interrupted: bool,
}

/// Pods that share an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupOutcome {
    /// What came of them.
    pub outcome: OutcomeId,
    /// Node or claim they go to; empty without one.
    pub target: String,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
    /// The pods, `namespace/name`.
    pub pods: Vec<String>,
}

/// A NodePool in a provisioning round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolOutcome {
    /// Its name.
    pub pool: String,
    /// What came of it.
    pub outcome: OutcomeId,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
}

/// A claim opened in a provisioning round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimOutcome {
    /// Name, empty when the creation failed.
    pub claim: String,
    /// NodePool.
    pub pool: String,
    /// What came of it.
    pub outcome: OutcomeId,
    /// Instance types it may become, best first; at most the first ten.
    pub instance_types: Vec<String>,
    /// How many it may become.
    pub instance_types_total: u32,
    /// Pods it is opened for.
    pub pods: u32,
    /// How many of them are about to be created.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub coming: u32,
    /// Effective cost of its best offering, USD an hour.
    pub price_per_hour: f64,
    /// The ranking policy's note.
    pub note: String,
}

/// A step in a claim's life.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchRecord {
    /// When.
    pub at: Timestamp,
    /// Name of the claim.
    pub claim: String,
    /// NodePool.
    pub pool: String,
    /// Node, once known.
    pub node: String,
    /// What came of it.
    pub outcome: OutcomeId,
    /// The instance type that was launched; empty before.
    pub instance_type: String,
    /// Its zone.
    pub zone: String,
    /// Its capacity type.
    pub capacity_type: String,
    /// Its price.
    pub price_per_hour: f64,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
    /// Policies that ordered the offerings.
    pub policies: Vec<PolicyUse>,
}

/// One disruption scan: exactly one outcome per node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionRound {
    /// When.
    pub at: Timestamp,
    /// Identifier shared with the policy calls of the scan.
    pub decision_id: String,
    /// Every tracked node once.
    pub nodes: Vec<NodeOutcome>,
    /// Policies that took part.
    pub policies: Vec<PolicyUse>,
    /// Commands decided.
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
    /// NodeClaim; empty without one.
    #[serde(default)]
    pub claim: String,
    /// NodePool; empty without one.
    pub pool: String,
    /// What came of it.
    pub outcome: OutcomeId,
    /// Why, where the outcome alone does not tell: the pod, the PDB, the nearest miss.
    pub reason: String,
}

impl NodeOutcome {
    /// Whether the subject is the node or its claim.
    pub fn is_about(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Node(name) => self.node == *name,
            Subject::Claim(name) => self.claim == *name,
            Subject::Pod(_) | Subject::Pool(_) => false,
        }
    }
}

/// A step of a disruption command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRecord {
    /// When.
    pub at: Timestamp,
    /// Identifier of the command, the same in all its steps.
    pub command_id: String,
    /// How far it got.
    pub step: CommandStep,
    /// What came of it.
    pub outcome: OutcomeId,
    /// Empty, Drifted or Underutilized.
    pub reason: String,
    /// delete or replace.
    pub decision: String,
    /// empty, multi, single or nothing.
    pub consolidation_type: String,
    /// Nodes that go.
    pub candidates: Vec<String>,
    /// Their claims.
    #[serde(default)]
    pub candidate_claims: Vec<String>,
    /// Claims that come.
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
    /// Done, one way or the other.
    Finished,
}

/// A step of a node's termination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminationRecord {
    /// When.
    pub at: Timestamp,
    /// Node.
    pub node: String,
    /// Claim; empty without one.
    pub claim: String,
    /// NodePool; empty without one.
    pub pool: String,
    /// What came of it.
    pub outcome: OutcomeId,
    /// Pods the step is about, `namespace/name`.
    pub pods: Vec<String>,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
}

/// What a question to the ledger is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A pod, `namespace/name`.
    Pod(String),
    /// A node.
    Node(String),
    /// A NodeClaim.
    Claim(String),
    /// A NodePool.
    Pool(String),
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
    pub fn mentions(&self, subject: &Subject) -> bool {
        match self {
            Self::ProvisioningRound(it) => it.mentions(subject),
            Self::Launch(it) => match subject {
                Subject::Pod(_) => false,
                Subject::Node(name) => it.node == *name,
                Subject::Claim(name) => it.claim == *name,
                Subject::Pool(name) => it.pool == *name,
            },
            Self::DisruptionRound(it) => match subject {
                Subject::Pool(name) => it.nodes.iter().any(|node| node.pool == *name),
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

impl ProvisioningRound {
    fn mentions(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Pod(key) => self.pods.iter().any(|group| group.pods.contains(key)),
            Subject::Node(name) => self.pods.iter().any(|group| group.target == *name),
            Subject::Claim(name) => {
                self.claims.iter().any(|claim| claim.claim == *name)
                    || self.pods.iter().any(|group| group.target == *name)
            }
            Subject::Pool(name) => self.pools.iter().any(|pool| pool.pool == *name),
        }
    }
}
