//! The record of one provisioning round.
//!
//! Its fields are part of what the ledger's hash is made of.

use jiff::Timestamp;
use scheduling::ranking::PolicyUse;
use serde::{Deserialize, Serialize};

use crate::ledger::outcome::OutcomeId;
use crate::ledger::subject::Subject;

/// Outcomes of pods, pools and claims in one provisioning round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProvisioningRound {
    /// Moment of the round.
    pub at: Timestamp,
    /// Identifier shared with the policy calls of the round.
    pub decision_id: String,
    /// Pods by outcome and destination.
    pub pods: Vec<PodGroupOutcome>,
    /// Outcome of each NodePool, every one once.
    pub pools: Vec<PoolOutcome>,
    /// Claims that were opened.
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
    /// Outcome that these pods share.
    pub outcome: OutcomeId,
    /// Node or claim they go to; empty without one.
    pub target: String,
    /// Why, where the outcome alone does not tell.
    pub reason: String,
    /// Names of the pods as `namespace/name`.
    pub pods: Vec<String>,
}

/// A NodePool in a provisioning round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolOutcome {
    /// Name of the NodePool.
    pub pool: String,
    /// Outcome of the round for the pool.
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
    /// Name of the NodePool.
    pub pool: String,
    /// Outcome of creating the claim.
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
    /// List price of its best offering, USD an hour.
    pub price_per_hour: f64,
    /// The ranking policy's note.
    pub note: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl ProvisioningRound {
    pub(super) fn mentions(&self, subject: &Subject) -> bool {
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
