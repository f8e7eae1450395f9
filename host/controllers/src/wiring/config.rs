//! Everything the controllers need from outside.
//!
//! Values and handles that the binary makes; nothing here runs.

use std::sync::Arc;

use cloudprovider::{Clock, CloudProvider, InterruptionQueue};
use disruption::PolicyHooks;
use hooks::binding::PolicyRegistry;
use hooks::disruption::{BudgetsHook, ConsolidationHook};
use kube::Client;
use scheduling::ranking::RankHook;

use crate::settings::Settings;
use crate::shell::journal::SharedLedger;
use crate::shell::metrics::Metrics;

/// The policies that judge.
#[derive(Clone)]
pub struct ControllersHooks {
    /// Which offering is worth what.
    pub rank: Arc<dyn RankHook>,
    /// Which consolidation is worth its while.
    pub consolidation: Arc<dyn ConsolidationHook>,
    /// How many nodes may be disrupted now.
    pub budgets: Arc<dyn BudgetsHook>,
}

impl ControllersHooks {
    /// The hooks as references, for one decision.
    pub(crate) fn lent(&self) -> PolicyHooks<'_> {
        let Self {
            rank,
            consolidation,
            budgets,
        } = self;
        PolicyHooks {
            rank: rank.as_ref(),
            consolidation: consolidation.as_ref(),
            budgets: budgets.as_ref(),
        }
    }
}

/// Everything the controllers need from outside.
pub struct ControllersConfig {
    /// Client of the API server.
    pub client: Client,
    /// Provider of the cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// Hooks through which policies decide.
    pub hooks: ControllersHooks,
    /// Tells the time of day.
    pub clock: Arc<dyn Clock>,
    /// Settings of the controllers, from flags and from the cluster.
    pub settings: Settings,
    /// Where decisions are recorded.
    pub ledger: SharedLedger,
    /// Metrics; the caller registers and serves them.
    pub metrics: Arc<Metrics>,
    /// Registry that takes policy bindings.
    pub policies: Arc<dyn PolicyRegistry>,
    /// Where the cloud says that it takes instances back, if it is to be listened to.
    pub interruptions: Option<Arc<dyn InterruptionQueue>>,
    /// Whether this is one of several replicas: then they only watch until they are told to lead.
    pub stands_by: bool,
}
