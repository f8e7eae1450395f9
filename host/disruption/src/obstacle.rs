//! Obstacles to a move, in the words of the ledger: which rule, and what exactly.
//!
//! What the rule itself says is the ledger's to word ([`OutcomeId`]).

use state::ledger::OutcomeId;

/// Rule that stands in the way of a move, and its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Rule that says no, as the ledger knows it.
    pub outcome: OutcomeId,
    /// The pod that blocks, the PodDisruptionBudgets that hold it, or the condition that is not repaired; none where
    /// the node itself is the cause. With the rule it tells one cause from another, which the words for people do not.
    pub about: Option<String>,
    /// Particulars for people; empty where the rule says it all.
    pub message: String,
}

impl Obstacle {
    /// Of the node itself.
    pub(crate) fn new(outcome: OutcomeId, message: impl Into<String>) -> Self {
        Self {
            outcome,
            about: None,
            message: message.into(),
        }
    }

    /// The same of something on the node.
    pub(crate) fn about(self, about: impl Into<String>) -> Self {
        Self {
            about: Some(about.into()),
            ..self
        }
    }

    /// The message for those who are not told the rule beside it.
    pub(crate) fn without_rule(&self) -> String {
        let message = &self.message;
        if self.outcome == OutcomeId::NodeUninitializedDestination {
            return format!("{message}, which is not initialized");
        }
        message.clone()
    }
}

impl From<OutcomeId> for Obstacle {
    /// Of the node itself, where the rule says it all.
    fn from(outcome: OutcomeId) -> Self {
        Self::new(outcome, "")
    }
}
