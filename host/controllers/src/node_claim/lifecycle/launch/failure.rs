//! Why claims can never be launched, in the words of metrics and of the ledger.
//!
//! A launch that is tried again is none of these. Answers to the errors for which `lifecycle/launch.go` deletes a
//! claim.

use state::ledger::OutcomeId;

/// Why a claim can never be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchFailure {
    /// Nothing it may be is to be had.
    InsufficientCapacity,
    /// Its NodeClass is not there or not ready.
    NodeClassNotReady,
}

impl LaunchFailure {
    pub(crate) fn metric_reason(self) -> &'static str {
        match self {
            Self::InsufficientCapacity => "insufficient_capacity",
            Self::NodeClassNotReady => "nodeclass_not_ready",
        }
    }

    pub(crate) fn outcome(self) -> OutcomeId {
        match self {
            Self::InsufficientCapacity => OutcomeId::ClaimInsufficientCapacity,
            Self::NodeClassNotReady => OutcomeId::ClaimNodeClassNotReady,
        }
    }
}
