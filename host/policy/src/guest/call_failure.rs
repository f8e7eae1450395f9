//! Why a call of a policy has no answer. Who decides instead is `after_failure.rs`'s.

use std::time::Duration;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Spent all its fuel.
    #[error("ran out of fuel after {0} operations")]
    OutOfFuel(u64),
    /// Wanted more computing for one row than that may take.
    #[error("{0}")]
    TooCostly(String),
    /// Took longer than its deadline.
    #[error("passed its deadline of {0:?}")]
    Deadline(Duration),
    /// Wanted more memory than it may have.
    #[error("wanted more than {0} bytes of memory: {1}")]
    OutOfMemory(usize, String),
    /// Wanted a larger table than it may have.
    #[error("wanted a table of more than {0} elements: {1}")]
    TableTooLarge(usize, String),
    /// Crashed in its own code, as by a panic.
    #[error("trapped: {0}")]
    Trapped(String),
    /// Said that it cannot answer.
    #[error("refused: {message}")]
    Refused {
        /// Message that the policy gave.
        message: String,
        /// Whether the same question may be answered later.
        transient: bool,
    },
    /// Did not take its configuration.
    #[error("refused its configuration: {0}")]
    Configuration(String),
    /// Answered something that is no answer.
    #[error("gave an invalid answer: {0}")]
    InvalidAnswer(String),
    /// Could not be given an instance.
    #[error("could not be started: {0}")]
    NotStarted(String),
}

impl CallFailure {
    /// Word for a deadline that was passed.
    pub(crate) const DEADLINE: &'static str = "DeadlineExceeded";

    /// As records have it.
    pub(crate) fn told(&self) -> String {
        format!("{}: {self}", self.reason())
    }

    /// CamelCase word for records and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OutOfFuel(_) | Self::TooCostly(_) => "OutOfFuel",
            Self::Deadline(_) => Self::DEADLINE,
            Self::OutOfMemory(..) | Self::TableTooLarge(..) => "OutOfMemory",
            Self::Trapped(_) => "Trapped",
            Self::Refused { .. } => "Refused",
            Self::Configuration(_) => "InvalidConfig",
            Self::InvalidAnswer(_) => "InvalidAnswer",
            Self::NotStarted(_) => "NotStarted",
        }
    }
}
