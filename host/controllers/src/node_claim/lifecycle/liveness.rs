//! How long a claim may take to become a node: for its instance, and then for the instance to register.
//!
//! It tells what is over and gives up nothing. Answers to `pkg/controllers/nodeclaim/lifecycle/liveness.go`.

use std::time::Duration;

use apis::NodeClaim;
use apis::conditions::{self, Conditioned as _};
use jiff::Timestamp;
use state::ledger::OutcomeId;

use crate::node_claim::remaining;

/// A claim that did not launch within this time is deleted.
pub(crate) const LAUNCH_TIMEOUT: Duration = Duration::from_mins(5);
/// A claim whose node did not register within this time is deleted.
pub(crate) const REGISTRATION_TIMEOUT: Duration = Duration::from_mins(15);

/// Stage of a claim's life that must not take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// To launch the instance.
    Launch,
    /// To register the node.
    Registration,
}

impl TimeLimit {
    /// Time that the claim still has; zero once it is over.
    pub(super) fn left(self, claim: &NodeClaim, now: Timestamp) -> Duration {
        let (condition, limit) = match self {
            Self::Launch => (conditions::LAUNCHED, LAUNCH_TIMEOUT),
            Self::Registration => (conditions::REGISTERED, REGISTRATION_TIMEOUT),
        };
        remaining(claim.condition_since(condition), limit, now)
    }

    pub(super) fn is_over(self, claim: &NodeClaim, now: Timestamp) -> bool {
        self.left(claim, now).is_zero()
    }

    pub(crate) fn metric_reason(self) -> &'static str {
        match self {
            Self::Launch => "launch_timeout",
            Self::Registration => "registration_timeout",
        }
    }

    pub(crate) fn outcome(self) -> OutcomeId {
        match self {
            Self::Launch => OutcomeId::ClaimLaunchTimeout,
            Self::Registration => OutcomeId::ClaimRegistrationTimeout,
        }
    }

    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Registration => "register",
        }
    }
}
