//! What the answer of the cloud to a launch means for its claim.
//!
//! Pure; `launch.rs` does it. Answers to the errors that `pkg/controllers/nodeclaim/lifecycle/launch.go` tells apart.

use apis::conditions::reason;
use cloudprovider::{CloudProviderError, Launched};

use super::failure::LaunchFailure;
use crate::shell::journal::recorder::shorten;

/// A condition message of a failed launch is cut here.
const MESSAGE_BYTES_MAX: usize = 300;

/// Meaning of the provider's answer for the claim.
#[derive(Debug, PartialEq)]
pub(super) enum LaunchVerdict {
    /// The claim has its instance.
    Launched(Box<Launched>),
    /// The claim cannot be launched: it is deleted and its pods are solved again.
    Delete {
        cause: LaunchFailure,
        message: String,
    },
    /// The launch is tried again.
    Retry {
        reason: String,
        message: String,
        error: CloudProviderError,
    },
    /// There is nothing to launch any more, and nobody is told. The claim is looked at again when something becomes of
    /// it.
    Drop(&'static str),
}

pub(super) fn decide(answer: Result<Launched, CloudProviderError>) -> LaunchVerdict {
    match answer {
        Ok(launched) => LaunchVerdict::Launched(Box::new(launched)),
        Err(CloudProviderError::InsufficientCapacity(message)) => LaunchVerdict::Delete {
            cause: LaunchFailure::InsufficientCapacity,
            message,
        },
        Err(CloudProviderError::NodeClassNotReady(message)) => LaunchVerdict::Delete {
            cause: LaunchFailure::NodeClassNotReady,
            message,
        },
        Err(CloudProviderError::Lost(why)) => LaunchVerdict::Drop(why),
        Err(error) => {
            let reason = match &error {
                CloudProviderError::Create { reason, .. }
                | CloudProviderError::NotYet { reason, .. } => reason.clone(),
                CloudProviderError::InsufficientCapacity(_)
                | CloudProviderError::NodeClassNotReady(_)
                | CloudProviderError::Lost(_)
                | CloudProviderError::NotFound(_)
                | CloudProviderError::Other(_) => reason::LAUNCH_FAILED.to_owned(),
            };
            let message = shorten(&error.to_string(), MESSAGE_BYTES_MAX);
            LaunchVerdict::Retry {
                reason,
                message,
                error,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_goes_where_it_can_never_be_launched_and_waits_otherwise() {
        let given_up = |cause| LaunchVerdict::Delete {
            cause,
            message: "m".to_owned(),
        };
        let retry =
            |reason: &str, message: &str, error: &CloudProviderError| LaunchVerdict::Retry {
                reason: reason.to_owned(),
                message: message.to_owned(),
                error: error.clone(),
            };
        let m = || "m".to_owned();
        let create = CloudProviderError::Create {
            reason: "SubnetsFull".to_owned(),
            message: m(),
        };
        let early = CloudProviderError::NotYet {
            reason: reason::NODE_CLASS_READINESS_UNKNOWN.to_owned(),
            message: m(),
        };
        let (gone, other) = (
            CloudProviderError::NotFound(m()),
            CloudProviderError::Other(m()),
        );
        let cases = [
            (
                CloudProviderError::InsufficientCapacity(m()),
                given_up(LaunchFailure::InsufficientCapacity),
            ),
            (
                CloudProviderError::NodeClassNotReady(m()),
                given_up(LaunchFailure::NodeClassNotReady),
            ),
            (create.clone(), retry("SubnetsFull", "m", &create)),
            (
                early.clone(),
                retry(reason::NODE_CLASS_READINESS_UNKNOWN, "m", &early),
            ),
            (
                gone.clone(),
                retry(reason::LAUNCH_FAILED, "nodeclaim not found, m", &gone),
            ),
            (other.clone(), retry(reason::LAUNCH_FAILED, "m", &other)),
            (CloudProviderError::Lost("m"), LaunchVerdict::Drop("m")),
        ];
        for (error, expected) in cases {
            assert_eq!(decide(Err(error)), expected);
        }
    }

    #[test]
    fn what_the_cloud_says_at_length_is_cut_in_the_condition() {
        let error = CloudProviderError::Other("x".repeat(2 * MESSAGE_BYTES_MAX));
        let LaunchVerdict::Retry { message, .. } = decide(Err(error)) else {
            panic!("a launch that failed is tried again");
        };
        assert!(
            message.starts_with("xxx") && message.len() <= MESSAGE_BYTES_MAX + 3,
            "{message}"
        );
    }
}
