//! The finding on one node: the rule that keeps it, or how it was chosen to go.
//!
//! Which of several findings stands is decided in `findings.rs`.

use state::ledger::OutcomeId;

use crate::obstacle::Obstacle;

/// Finding on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeFinding {
    /// A rule keeps the node.
    Kept(Obstacle),
    /// A method chose the node to go.
    Chosen {
        /// By which method, in the words of the ledger.
        outcome: OutcomeId,
        /// Words of the policy, or the trouble of the node.
        reason: String,
    },
}

impl NodeFinding {
    /// Outcome of the rule that keeps the node, or of the method that chose it.
    pub(crate) fn outcome(&self) -> OutcomeId {
        match self {
            Self::Kept(obstacle) => obstacle.outcome,
            Self::Chosen { outcome, .. } => *outcome,
        }
    }

    /// Explanation in words; empty where the outcome says it all.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Kept(obstacle) => &obstacle.message,
            Self::Chosen { reason, .. } => reason,
        }
    }

    /// Obstacle that keeps the node; `None` for one that was chosen.
    pub(crate) fn obstacle(&self) -> Option<&Obstacle> {
        match self {
            Self::Kept(obstacle) => Some(obstacle),
            Self::Chosen { .. } => None,
        }
    }
}
