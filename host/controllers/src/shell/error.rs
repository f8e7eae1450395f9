//! The errors of a reconcile, one class per reaction of the runner.
//!
//! Decisions never make these; only the observing and applying halves do.

use cloudprovider::CloudProviderError;

/// Why a reconcile did not finish.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The API server refused or did not answer.
    #[error("kubernetes: {0}")]
    Kube(#[from] kube::Error),
    /// The cloud refused or did not answer.
    #[error("cloud provider: {0}")]
    Provider(#[from] CloudProviderError),
    /// Somebody has a right to refuse, such as a PodDisruptionBudget; asked again with back-off.
    #[error("{0}")]
    Refused(String),
    /// A value could not be written as JSON.
    #[error("encoding: {0}")]
    Encode(#[from] serde_json::Error),
    /// Trying again cannot help until the object changes.
    #[error("{0}")]
    Terminal(String),
    /// A bug: the reconcile panicked, or what it had computed elsewhere.
    #[error("the reconcile panicked")]
    Panicked,
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
    /// The one table from errors to reactions.
    pub(crate) fn class(&self) -> ErrorClass {
        match self {
            Self::Kube(error) => match api_code(error) {
                Some(404) => ErrorClass::Gone,
                Some(409 | 429) => ErrorClass::Retry,
                Some(_) | None => ErrorClass::Fault,
            },
            Self::Provider(CloudProviderError::NotYet { .. }) | Self::Refused(_) => {
                ErrorClass::Retry
            }
            Self::Provider(_) | Self::Panicked => ErrorClass::Fault,
            Self::Encode(_) | Self::Terminal(_) => ErrorClass::Terminal,
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
        Err(error) if error.class() == ErrorClass::Gone => Ok(None),
        Err(error) => Err(error),
    }
}
