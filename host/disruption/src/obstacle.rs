//! What stands in the way of a move, in the words of the ledger: which rule, and what exactly.

use state::ledger::OutcomeId;

/// What stands in the way of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// Which rule.
    pub(crate) outcome: OutcomeId,
    /// What exactly.
    pub(crate) reason: String,
}

impl Obstacle {
    pub(crate) fn new(outcome: OutcomeId, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
        }
    }

    /// The reason for those who are not told the rule beside it.
    pub(crate) fn without_rule(&self) -> String {
        let reason = &self.reason;
        if self.outcome == OutcomeId::NodeUninitializedDestination {
            return format!("{reason}, which is not initialized");
        }
        reason.clone()
    }
}
