//! How calls reach the account: what they have in common, and what may stand between the account and who asks.
//!
//! A gate knows names of operations and nothing of what is asked; what it lets through takes effect, whatever becomes
//! of who sent it. Answers to no file of Karpenter.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use aws::seam::{ApiError, ApiResult};

use super::{AccountState, SimulatedEc2};

/// Stands between one caller and the account. Either method may never return: then the caller died.
#[async_trait]
pub trait Gate: Debug + Send + Sync {
    /// A call is about to leave. The answer is the number under which it comes back.
    async fn leaves(&self, operation: &'static str) -> usize;

    /// The call of that number took effect, and its answer is about to be heard.
    async fn returns(&self, number: usize);
}

impl SimulatedEc2 {
    /// The account as a caller behind a gate sees it; both share everything.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        Self {
            gate: Some(gate),
            ..self.clone()
        }
    }

    /// Sends a call through the gate, if there is one.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        operation: &'static str,
        answer: impl FnOnce(&mut AccountState) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let Some(gate) = &self.gate else {
            return self.answer(operation, answer).await;
        };
        let number = gate.leaves(operation).await;
        let account = self.clone();
        // On its own: what was sent arrives, though who sent it may be gone by then.
        let answered = tokio::spawn(async move { account.answer(operation, answer).await }).await;
        gate.returns(number).await;
        answered.unwrap_or_else(|error| Err(ApiError::unanswered(error.to_string())))
    }

    /// What every call has in common: it takes time, is counted, may be throttled and may fail.
    async fn answer<T>(
        &self,
        operation: &'static str,
        answer: impl FnOnce(&mut AccountState) -> ApiResult<T>,
    ) -> ApiResult<T> {
        let delay = self.latency.then(|| self.state().latency(operation));
        if let Some(delay) = delay {
            tokio::time::sleep(delay).await;
        }
        let mut state = self.state();
        *state.calls.entry(operation).or_default() += 1;
        state.advance();
        state.throttle(operation)?;
        state.admit(operation)?;
        answer(&mut state)
    }
}

impl AccountState {
    /// Whether the call is answered at all: it may be denied, and may fail for no reason of its own.
    pub(super) fn admit(&mut self, operation: &str) -> ApiResult<()> {
        self.authorize(operation)?;
        if self.happens(self.config.faults.internal_error_chance) {
            return Err(ApiError::server(
                "InternalError",
                "An internal error has occurred",
            ));
        }
        Ok(())
    }

    /// Whether what has this chance happens now. What has none takes nothing from the source of all chance.
    pub(super) fn happens(&mut self, chance: f64) -> bool {
        chance > 0.0 && self.chance.next_unit() < chance
    }

    fn authorize(&self, operation: &str) -> ApiResult<()> {
        if self.config.faults.is_expired {
            return Err(ApiError::client("RequestExpired", "Request has expired."));
        }
        let asked = operation.trim_end_matches(" DryRun");
        if self.config.faults.denied.iter().any(|it| it == asked) {
            let message = format!(
                "You are not authorized to perform this operation: {asked}, because no identity-based policy allows it."
            );
            return Err(ApiError::client("UnauthorizedOperation", message));
        }
        Ok(())
    }
}
