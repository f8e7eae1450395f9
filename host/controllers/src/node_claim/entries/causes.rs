//! Why claims are given up before they are nodes, in the words of metrics and of the ledger.

use state::ledger::OutcomeId;

/// Why a claim can never be launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchFailure {
    /// Nothing it may be is to be had.
    InsufficientCapacity,
    /// Its NodeClass is not there or not ready.
    NodeClassNotReady,
}

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// To launch the instance.
    Launch,
    /// To join the cluster.
    Registration,
}

impl LaunchFailure {
    pub(super) fn metric_reason(self) -> &'static str {
        match self {
            Self::InsufficientCapacity => "insufficient_capacity",
            Self::NodeClassNotReady => "nodeclass_not_ready",
        }
    }

    pub(super) fn outcome(self) -> OutcomeId {
        match self {
            Self::InsufficientCapacity => OutcomeId::ClaimInsufficientCapacity,
            Self::NodeClassNotReady => OutcomeId::ClaimNodeClassNotReady,
        }
    }
}

impl TimeLimit {
    pub(super) fn metric_reason(self) -> &'static str {
        match self {
            Self::Launch => "launch_timeout",
            Self::Registration => "registration_timeout",
        }
    }

    pub(super) fn outcome(self) -> OutcomeId {
        match self {
            Self::Launch => OutcomeId::ClaimLaunchTimeout,
            Self::Registration => OutcomeId::ClaimRegistrationTimeout,
        }
    }

    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Registration => "register",
        }
    }
}
