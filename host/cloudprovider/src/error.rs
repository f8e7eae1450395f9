//! The errors a provider may answer, one variant per reaction of the caller.
//!
//! Words are those of Karpenter's `pkg/cloudprovider/types.go`, as events and logs show them.

/// Why a provider could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudProviderError {
    /// No capacity for any offering of the claim: the claim is deleted and its pods are solved again.
    #[error("insufficient capacity, {0}")]
    InsufficientCapacity(String),
    /// The NodeClass is missing, deleting or not ready: the claim is deleted.
    #[error("NodeClassRef not ready, {0}")]
    NodeClassNotReady(String),
    /// The launch failed for another reason; it is retried, and the claim's `Launched` condition carries both words.
    #[error("{message}")]
    Create {
        /// Condition reason, in CamelCase.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// Nothing is wrong, and nothing can be said yet: what it hangs on was not looked at so far. It is asked again
    /// without a word in the log; a launch's claim carries both words in its `Launched` condition.
    #[error("{message}")]
    NotYet {
        /// Condition reason, in CamelCase.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// The claim is no longer one to launch for, and the cloud was asked for nothing: the launch ends without a word.
    #[error("{0}")]
    Lost(&'static str),
    /// The instance (or other object) does not exist: a delete is done, a get means it is gone.
    #[error("nodeclaim not found, {0}")]
    NotFound(String),
    /// Anything else; the caller retries with back-off.
    #[error("{0}")]
    Other(String),
}

impl CloudProviderError {
    /// Whether the object asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }
}

/// Why an attempt to launch was not written on its claim, so that the cloud is asked for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttemptError {
    /// The claim is gone, is going or was launched by somebody else: there is nothing to launch any more.
    #[error("{0}")]
    Lost(&'static str),
    /// The launch is tried again.
    #[error("the launch could not be written down: {0}")]
    Unwritten(String),
}

impl From<AttemptError> for CloudProviderError {
    fn from(error: AttemptError) -> Self {
        match error {
            AttemptError::Lost(why) => Self::Lost(why),
            AttemptError::Unwritten(_) => Self::Other(error.to_string()),
        }
    }
}

/// Why a node could not be rebooted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RebootError {
    /// To ask again cannot help: the provider cannot reboot, may not, or knows no such instance. The node is
    /// replaced instead.
    #[error("{0}")]
    Terminal(String),
    /// Anything else; the caller asks again for a while.
    #[error("{0}")]
    Other(String),
}
