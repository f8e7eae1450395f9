//! A NodeClaim that a pass wants, and what came of it.
//!
//! It creates nothing.

use apis::NodeClaim;
use scheduling::solution::NewClaim;
use state::ledger::OutcomeId;

use crate::shell::error::PoolGone;

/// A new claim and what came of its creation.
pub(super) struct Creation<'a> {
    pub(super) new: &'a NewClaim,
    pub(super) result: Result<NodeClaim, CreationRefusal>,
}

/// Why a claim was not created.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreationRefusal {
    #[error("nodepool \"{pool}\" is over its limits ({resources})")]
    OverLimits { pool: String, resources: String },
    #[error(transparent)]
    PoolGone(#[from] PoolGone),
    #[error("{0}")]
    Api(#[from] kube::Error),
}

impl CreationRefusal {
    pub(super) fn outcome(&self) -> OutcomeId {
        match self {
            Self::OverLimits { .. } => OutcomeId::ClaimLimitExceeded,
            Self::PoolGone(_) | Self::Api(_) => OutcomeId::ClaimCreateFailed,
        }
    }
}
