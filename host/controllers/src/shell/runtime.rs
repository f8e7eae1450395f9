//! Runs one controller over its work queue: bounded concurrency, one place where errors become delays.
//!
//! It knows no object kinds and takes no decision. Reconciles are polled inside the runner's own task, in the
//! order in which they become ready, so that equal inputs give equal runs. Answers to controller-runtime's
//! `pkg/internal/controller/controller.go`.

pub(crate) mod action;
pub(crate) mod log_spans;
pub(crate) mod periodic;
pub(crate) mod queue_loads;
pub(crate) mod several_at_once;
pub(crate) mod work_queue;

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::Instant;
use tracing::{Instrument as _, Span, debug, error};

use crate::shell::error::{ErrorClass, ReconcileError};
use crate::shell::metrics::Metrics;
use crate::shell::runtime::action::Action;
use crate::shell::runtime::log_spans::{
    ControllerName, LoggedKey, controller_span, reconcile_span,
};
use crate::shell::runtime::work_queue::WorkQueue;
use crate::shell::turn::{Turn, TurnStage};

/// How a controller is run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControllerRun {
    pub(crate) controller: ControllerName,
    /// Reconciles at work at one time, at most.
    pub(crate) concurrency: usize,
}

/// A level-triggered controller: brings one object closer to what it should be.
pub(crate) trait Reconciler: Send + Sync + 'static {
    /// Key of a unit of work.
    type Key: Ord + Clone + Debug + LoggedKey + Send + Sync + 'static;

    /// Brings `key` one step further. Short and idempotent; never waits for the world, but requeues.
    fn reconcile(
        &self,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Action, ReconcileError>> + Send;
}

/// Serves the queue until the future is dropped, or until the process stops and what is at work is done.
pub(crate) async fn run<R: Reconciler>(
    how: ControllerRun,
    queue: Arc<WorkQueue<R::Key>>,
    reconciler: Arc<R>,
    metrics: Arc<Metrics>,
    turn: Turn,
) {
    let ControllerRun {
        controller,
        concurrency,
    } = how;
    let name = controller.name;
    metrics.begin_controller(name, concurrency);
    let active = metrics.active_workers(name);
    queue.measure(metrics.queue_meter(name));
    let controller = controller_span(controller);
    let mut running = FuturesUnordered::new();
    let mut stops = pin!(turn.wait_for(TurnStage::Stops));
    let mut begins = true;
    let mut reconciles: u64 = 0;
    while begins || !running.is_empty() {
        tokio::select! { biased;
            () = &mut stops, if begins => begins = false,
            Some((key, outcome, took, span)) = running.next(), if !running.is_empty() => {
                active.dec();
                metrics.reconciled(name, took, &outcome);
                Span::in_scope(&span, || settle(&queue, key, outcome));
            }
            key = queue.next(), if begins && running.len() < concurrency => {
                let reconciler = Arc::clone(&reconciler);
                active.inc();
                reconciles += 1;
                let span = reconcile_span(&controller, &key, reconciles);
                let settled_in = span.clone();
                running.push(async move {
                    let started = Instant::now();
                    let caught = AssertUnwindSafe(reconciler.reconcile(&key)).catch_unwind().await;
                    let outcome = caught.unwrap_or(Err(ReconcileError::Panicked));
                    (key, outcome, started.elapsed(), settled_in)
                }.instrument(span));
            }
        }
    }
}

/// The one place where the outcome of a reconcile becomes a delay.
fn settle<K: Ord + Clone>(queue: &WorkQueue<K>, key: K, outcome: Result<Action, ReconcileError>) {
    let failure = match outcome {
        Ok(action) => return queue.done(key, action.delay()),
        Err(failure) => failure,
    };
    match failure.class() {
        ErrorClass::Retry => {
            debug!(error = %failure, "reconcile will be tried again");
            queue.failed(key);
        }
        ErrorClass::Fault => {
            error!(error = %failure, "reconciler error");
            queue.failed(key);
        }
        ErrorClass::Gone => queue.done(key, None),
        ErrorClass::Terminal => {
            error!(error = %failure, "terminal reconciler error");
            queue.done(key, None);
        }
    }
}
