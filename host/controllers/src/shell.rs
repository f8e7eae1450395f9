//! Things that all controllers share: settings and clock, the model that is read, the writer, the journal. What serves
//! one purpose of the process alone has a module of its own: settings, rights, watches, the wiring of controllers, what
//! is scraped. What a few controllers remember together stands with the one that writes it and is handed to them by
//! `wiring/shared.rs`.
//!
//! What controllers are run by (queues, delays, rounds) is `runtime.rs`; the folder of each file holds what it does its
//! work by. All of it decides nothing, and knows no controller.

pub(crate) mod error;
pub(crate) mod journal;
pub(crate) mod metrics;
pub(crate) mod model;
pub(crate) mod runtime;
pub(crate) mod turn;
pub(crate) mod writer;

use std::sync::Arc;
use std::time::Duration;

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use cloudprovider::Clock;
use jiff::Timestamp;
use kube::Client;
use scheduling::Interrupt;

use crate::settings::{Settings, SolvePlacement};
use crate::shell::error::ReconcileError;
use crate::shell::journal::Journal;
use crate::shell::metrics::Metrics;
use crate::shell::model::Model;
use crate::shell::writer::Writer;

/// Shared by all controllers.
pub(crate) struct Shell {
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    /// For pods, and for kinds that one controller alone reads and writes.
    pub(crate) client: Client,
    pub(crate) model: Arc<Model>,
    pub(crate) writer: Writer,
    pub(crate) journal: Arc<Journal>,
    /// For what is measured and told in no other way; whatever also has a log line or an Event goes by the journal.
    pub(crate) metrics: Arc<Metrics>,
}

impl Shell {
    pub(crate) fn new(
        client: Client,
        clock: Arc<dyn Clock>,
        settings: Settings,
        journal: Arc<Journal>,
    ) -> Self {
        let model = Arc::new(Model::new(client.clone(), Arc::clone(&clock), &settings));
        Self {
            writer: Writer::new(client.clone(), Arc::clone(&clock), Arc::clone(&model)),
            settings,
            clock,
            client,
            model,
            metrics: Arc::clone(&journal.metrics),
            journal,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Runs a computation where the settings want it. One that panicked has no answer: nobody may take it for the
    /// answer that there is nothing.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        match self.settings.solve_placement {
            SolvePlacement::Inline => Ok(work()),
            SolvePlacement::Blocking => tokio::task::spawn_blocking(work).await.map_err(|error| {
                tracing::error!(%error, "computation panicked");
                ReconcileError::Panicked
            }),
        }
    }

    /// As [`Self::compute`]. Once the limit is over, the work is told to stop, and what it has by then is its answer.
    pub(crate) async fn compute_within<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Interrupt) -> T + Send + 'static,
    ) -> Result<T, ReconcileError> {
        let interrupt = Interrupt::never();
        let stop = interrupt.clone();
        let work = self.compute(move || work(&stop));
        tokio::pin!(work);
        tokio::select! { biased;
            done = &mut work => done,
            () = tokio::time::sleep(limit) => {
                interrupt.trip();
                work.await
            }
        }
    }

    /// A seed that depends on the run's seed and the decision, and on nothing else.
    pub(crate) fn seed_for(&self, decision_id: &str) -> u64 {
        fnv_1a(self.settings.seed ^ OFFSET_BASIS, decision_id.bytes())
    }
}
