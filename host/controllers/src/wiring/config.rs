//! Everything the controllers need from outside.
//!
//! Values and handles that the binary makes; nothing here runs.

use std::sync::Arc;

use cloudprovider::{Clock, CloudProvider, InterruptionQueue};
use disruption::hooks::{BudgetsHook, ConsolidationHook};
use hooks::binding::PolicyRegistry;
use kube::Client;
use scheduling::ranking::RankHook;

use crate::settings::Settings;
use crate::shell::journal::SharedLedger;
use crate::shell::metrics::Metrics;
use crate::voluntary_disruption::repair_policies;

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

/// Everything the controllers need from outside.
pub struct ControllersConfig {
    /// Client of the API server.
    pub client: Client,
    /// The cloud.
    pub provider: Arc<dyn CloudProvider>,
    /// The policies.
    pub hooks: ControllersHooks,
    /// Tells the time of day.
    pub clock: Arc<dyn Clock>,
    /// Settings.
    pub settings: Settings,
    /// Where decisions are recorded.
    pub ledger: SharedLedger,
    /// Metrics; the caller registers and serves them.
    pub metrics: Arc<Metrics>,
    /// Takes policy bindings.
    pub policies: Arc<dyn PolicyRegistry>,
    /// Where the cloud says that it takes instances back, if it is to be listened to.
    pub interruptions: Option<Arc<dyn InterruptionQueue>>,
}

impl ControllersConfig {
    /// What would keep the controllers from doing what the settings say; they must not start then.
    pub fn check(&self) -> Result<(), String> {
        repair_policies(&self.settings, self.provider.as_ref()).map(drop)
    }
}
