//! Rounds that go on for ever without a queue: sleeps, counts the rounds, and tells of those that fail.
//!
//! Decides nothing but when. Answers to `singleton` of awslabs/operatorpkg.

use std::time::Duration;

use crate::shell::error::ReconcileError;
use crate::shell::metrics::Metrics;

/// A controller that goes round by itself.
pub(crate) trait Periodic {
    /// Karpenter's name of it, as metrics show it.
    const NAME: &'static str;
    /// Whether the first round is at once, and not after the pause that follows a round which was not due.
    const BEGINS_AT_ONCE: bool;
    /// Why a round did not come to its end.
    type Error: Into<ReconcileError> + Send;

    /// Whether there is anything to go round for; what is passed over is no round to metrics.
    fn is_due(&self) -> bool {
        true
    }

    /// Does the work of one round.
    fn round(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Tells of a round that did not come to its end; nothing where each failure is told of with what it is about.
    fn log(&mut self, _: &Self::Error) {}

    /// How long it rests then.
    fn pause(&self, past: PastRound) -> Duration;
}

/// Result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PastRound {
    NotDue,
    Done,
    Failed,
}

/// Goes round for ever.
pub(crate) async fn run<P: Periodic>(metrics: &Metrics, mut controller: P) {
    metrics.begin_controller(P::NAME, 1);
    if !P::BEGINS_AT_ONCE {
        tokio::time::sleep(controller.pause(PastRound::NotDue)).await;
    }
    loop {
        let past = if controller.is_due() {
            measured_round(metrics, &mut controller).await
        } else {
            PastRound::NotDue
        };
        tokio::time::sleep(controller.pause(past)).await;
    }
}

/// The round is over for metrics once this returns, before the pause.
async fn measured_round<P: Periodic>(metrics: &Metrics, controller: &mut P) -> PastRound {
    let mut round = metrics.round(P::NAME);
    match controller.round().await {
        Ok(()) => PastRound::Done,
        Err(error) => {
            controller.log(&error);
            round.failed(error.into());
            PastRound::Failed
        }
    }
}
