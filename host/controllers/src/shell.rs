//! What the controllers stand on and share: settings and clock, the model that is read, the writer, the journal, and
//! the notes that several controllers keep together. What serves one purpose of the process alone has a module of its
//! own: settings, rights, watches, the wiring of controllers, what is scraped.
//!
//! It holds and decides nothing.

pub(crate) mod action;
pub(crate) mod claim_names;
pub(crate) mod error;
pub(crate) mod feed;
pub(crate) mod finalizers;
pub(crate) mod journal;
pub(crate) mod log_values;
pub(crate) mod managed;
pub(crate) mod measured_provider;
pub(crate) mod metrics;
pub(crate) mod model;
pub(crate) mod notes;
pub(crate) mod paging;
pub(crate) mod patching;
pub(crate) mod periodic;
pub(crate) mod recorder;
pub(crate) mod references;
pub(crate) mod runtime;
pub(crate) mod turn;
pub(crate) mod work_queue;
pub(crate) mod writer;

use std::sync::Arc;

use apis::fnv::{OFFSET_BASIS, fnv_1a};
use cloudprovider::Clock;
use jiff::Timestamp;
use kube::Client;
use scheduling::ranking::RankHook;
use tokio::sync::Notify;

use crate::node_pool::registration_health::RegistrationHealth;
use crate::nomination::Nominations;
use crate::settings::{Settings, SolvePlacement};
use crate::shell::error::ReconcileError;
use crate::shell::journal::Journal;
use crate::shell::metrics::Metrics;
use crate::shell::model::Model;
use crate::shell::notes::launching::Launching;
use crate::shell::notes::overlays::Overlays;
use crate::shell::notes::passes::Passes;
use crate::shell::notes::pod_ledger::PodLedger;
use crate::shell::notes::pod_starts::PodStarts;
use crate::shell::notes::queue_loads::QueueLoads;
use crate::shell::notes::sold_types::SoldTypes;
use crate::shell::notes::static_pending::StaticPending;
use crate::shell::turn::Turn;
use crate::shell::writer::Writer;
use crate::status_conditions::StatusConditions;
use crate::voluntary_disruption::deletion_cost::written::WrittenCosts;

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
    pub(crate) rank: Arc<dyn RankHook>,
    pub(crate) pod_ledger: PodLedger,
    pub(crate) pod_starts: PodStarts,
    pub(crate) status_conditions: StatusConditions,
    pub(crate) sold_types: SoldTypes,
    /// What solvers are at.
    pub(crate) passes: Passes,
    pub(crate) queue_loads: QueueLoads,
    pub(crate) written_costs: WrittenCosts,
    pub(crate) nominations: Nominations,
    pub(crate) registration_health: RegistrationHealth,
    pub(crate) overlays: Arc<Overlays>,
    /// What claims are about to become.
    pub(crate) launching: Launching,
    /// Notified when a pod left a node that stays.
    pub(crate) pod_left: Notify,
    pub(crate) static_pending: StaticPending,
    pub(crate) turn: Turn,
}

impl Shell {
    pub(crate) fn new(
        client: Client,
        clock: Arc<dyn Clock>,
        settings: Settings,
        rank: Arc<dyn RankHook>,
        journal: Arc<Journal>,
    ) -> Self {
        let model = Arc::new(Model::new(client.clone(), Arc::clone(&clock), &settings));
        Self {
            nominations: Nominations::new(
                client.clone(),
                Arc::clone(&model),
                Arc::clone(&journal),
                &settings,
            ),
            writer: Writer::new(client.clone(), Arc::clone(&clock), Arc::clone(&model)),
            settings,
            clock,
            client,
            model,
            metrics: Arc::clone(&journal.metrics),
            journal,
            rank,
            pod_ledger: PodLedger::default(),
            pod_starts: PodStarts::default(),
            status_conditions: StatusConditions::default(),
            sold_types: SoldTypes::default(),
            passes: Passes::default(),
            queue_loads: QueueLoads::default(),
            written_costs: WrittenCosts::default(),
            launching: Launching::default(),
            registration_health: RegistrationHealth::default(),
            overlays: Arc::default(),
            pod_left: Notify::new(),
            static_pending: StaticPending::default(),
            turn: Turn::default(),
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

    /// A seed that depends on the run's seed and the decision, and on nothing else.
    pub(crate) fn seed_for(&self, decision_id: &str) -> u64 {
        fnv_1a(self.settings.seed ^ OFFSET_BASIS, decision_id.bytes())
    }
}
