//! The errors of a reconcile, one class per reaction of the runner.
//!
//! Decisions never make these; only the observing and applying halves do.

use std::convert::Infallible;

use cloudprovider::CloudProviderError;

/// Why a reconcile did not finish.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The API server refused or did not answer.
    #[error("kubernetes: {0}")]
    Kube(#[from] kube::Error),
    /// An object that was to be written is gone.
    #[error("kubernetes: {0}")]
    Gone(#[source] kube::Error),
    /// The cloud refused or did not answer.
    #[error("cloud provider: {0}")]
    Provider(#[from] CloudProviderError),
    /// Somebody has a right to refuse, such as a PodDisruptionBudget; asked again with back-off.
    #[error("{0}")]
    Refused(String),
    /// A value could not be written as JSON.
    #[error("encoding: {0}")]
    Encode(#[from] serde_json::Error),
    /// A NodePool is not to have the nodes that were wanted of it; trying again cannot help until it changes.
    #[error(transparent)]
    Pool(#[from] PoolRefusal),
    /// A bug: the reconcile panicked, or what it had computed elsewhere.
    #[error("the reconcile panicked")]
    Panicked,
}

/// There is no NodePool by that name any more.
#[derive(Debug, thiserror::Error)]
#[error("nodepool \"{0}\" is gone")]
pub(crate) struct PoolGone(pub(crate) String);

/// Why a NodePool is not to have the nodes that were wanted of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolRefusal {
    #[error(transparent)]
    Gone(#[from] PoolGone),
    /// It has as many nodes as it may have.
    #[error("nodepool \"{0}\" is at its limit of nodes")]
    AtLimit(String),
}

impl From<Infallible> for ReconcileError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The reactions of the runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// Expected now and then, such as a write conflict: back off quietly.
    Retry,
    /// Unexpected: back off and log.
    Fault,
    /// The object is gone; nothing to do.
    Gone,
    /// Log and wait for a change of the object.
    Terminal,
}

impl ReconcileError {
    /// Error from the API server's answer to a write on an object that was there.
    pub(crate) fn of_write(error: kube::Error) -> Self {
        if is_not_found(&error) {
            Self::Gone(error)
        } else {
            Self::Kube(error)
        }
    }

    /// The one table from errors to reactions.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Gone(_) => ErrorClass::Gone,
            // Where nothing was to be written, "not found" is a kind or a namespace that is missing.
            Self::Kube(error) => match api_code(error) {
                Some(409 | 429) => ErrorClass::Retry,
                Some(_) | None => ErrorClass::Fault,
            },
            Self::Provider(CloudProviderError::NotYet { .. }) | Self::Refused(_) => {
                ErrorClass::Retry
            }
            Self::Provider(_) | Self::Panicked => ErrorClass::Fault,
            Self::Encode(_) | Self::Pool(_) => ErrorClass::Terminal,
        }
    }
}

/// The code of the API server's answer; none where it did not answer.
pub(crate) fn api_code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// Whether the API server says that the object does not exist.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    api_code(error) == Some(404)
}

/// Treats "does not exist" as done.
pub(crate) fn ignore_not_found<T, E: Into<ReconcileError>>(
    result: Result<T, E>,
) -> Result<Option<T>, ReconcileError> {
    match result.map_err(Into::into) {
        Ok(value) => Ok(Some(value)),
        Err(ReconcileError::Gone(_)) => Ok(None),
        Err(ReconcileError::Kube(error)) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16) -> kube::Error {
        kube::Error::Api(Status::failure("m", "r").with_code(code).boxed())
    }

    #[test]
    fn only_what_was_to_be_written_can_be_gone() {
        let cases = [
            (ReconcileError::of_write(answer(404)), ErrorClass::Gone),
            (ReconcileError::of_write(answer(409)), ErrorClass::Retry),
            (answer(404).into(), ErrorClass::Fault),
            (answer(409).into(), ErrorClass::Retry),
            (answer(500).into(), ErrorClass::Fault),
        ];
        for (error, expected) in cases {
            assert_eq!(error.class(), expected, "{error:?}");
        }
    }

    #[test]
    fn what_is_gone_needs_no_deletion() {
        let written = ignore_not_found(Err::<(), _>(ReconcileError::of_write(answer(404))));
        let deleted = ignore_not_found(Err::<(), _>(answer(404)));
        for done in [written, deleted] {
            assert!(matches!(done, Ok(None)), "{done:?}");
        }
        assert!(ignore_not_found(Err::<(), _>(answer(500))).is_err());
    }
}
