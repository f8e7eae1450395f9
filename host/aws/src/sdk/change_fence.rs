//! Whether calls that change something may be sent: not by a process in whose place another may lead by now.
//!
//! It knows no leases: who connects says what to ask. The answer is asked for whenever a call gets on, so that one that
//! waits for a connection or for its next attempt is not sent once another may lead. Karpenter has no counterpart.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::seam::{ApiError, ApiResult};

/// Effect of a call on the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEffect {
    /// The call changes something.
    Change,
    /// It only asks whether it might.
    DryRun,
}

impl CallEffect {
    /// Of a request that says whether it is dry.
    pub(super) fn of(dry_run: Option<bool>) -> Self {
        if dry_run == Some(true) {
            Self::DryRun
        } else {
            Self::Change
        }
    }
}

/// Question that is asked before a change is sent.
#[derive(Clone)]
pub(super) struct ChangeFence(Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for ChangeFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChangeFence")
            .field(&self.may_be_sent())
            .finish()
    }
}

impl Default for ChangeFence {
    /// Nobody else could lead.
    fn default() -> Self {
        Self(Arc::new(|| true))
    }
}

impl ChangeFence {
    pub(super) fn while_so(may_be_sent: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may_be_sent))
    }

    fn may_be_sent(&self) -> bool {
        (self.0)()
    }

    /// The answer of a call for as long as changes may be sent; of one that changes nothing in any case.
    pub(super) async fn fence<T>(
        &self,
        effect: CallEffect,
        call: impl Future<Output = ApiResult<T>>,
    ) -> ApiResult<T> {
        let mut call = pin!(call);
        let fenced = poll_fn(|context| {
            if effect == CallEffect::Change && !self.may_be_sent() {
                return Poll::Ready(Err(lapsed()));
            }
            call.as_mut().poll(context)
        });
        fenced.await
    }
}

/// An earlier attempt may have arrived, so nobody knows what came of the call.
fn lapsed() -> ApiError {
    ApiError::unanswered("not sent, or not waited for: this replica does not hold the lease")
}

#[cfg(test)]
mod tests;
