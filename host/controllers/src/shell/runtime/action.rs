//! Answers of a reconcile.
//!
//! A failure is none of them: when that is tried again is the queue's to say.

use std::time::Duration;

/// Next look that a reconcile wants which succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing until the object changes.
    Await,
    /// To be called again after a while.
    RequeueAfter(Duration),
}

impl Action {
    /// To be called again at once: there is a next step.
    pub(crate) const NOW: Self = Self::RequeueAfter(Duration::ZERO);

    /// The sooner of two wishes.
    #[must_use]
    pub(crate) fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Await, other) => other,
            (this, Self::Await) => this,
            (Self::RequeueAfter(a), Self::RequeueAfter(b)) => Self::RequeueAfter(a.min(b)),
        }
    }

    pub(super) fn delay(self) -> Option<Duration> {
        match self {
            Self::Await => None,
            Self::RequeueAfter(delay) => Some(delay),
        }
    }
}
