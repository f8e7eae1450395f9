//! The shells: watches become facts of the cluster model, and every controller observes, decides and applies.
//!
//! Answers to Karpenter's `pkg/controllers`. Depends on no cloud and no policy engine; both come in through ports.
//! Time comes from the injected clock and from `tokio::time` only, so that all of it runs in simulated time as well.

mod capacity_buffer;
mod capacity_reservation;
mod interruption;
mod node;
mod node_capacity;
mod node_claim;
mod node_class;
mod node_overlay;
mod node_pool;
mod observability;
mod pod_nomination;
mod policy_binding;
mod provisioning;
pub mod rbac;
mod settings;
mod shell;
mod static_capacity;
mod status_conditions;
#[cfg(test)]
mod test_objects;
mod voluntary_disruption;
mod watches;
mod wiring;
mod zonal_shift;

pub use observability::StateMetrics;
pub use observability::page::metrics_page;
pub use policy_binding::{POLICY_LABEL, source_of};
pub use settings::{
    FeatureGates, NominatePlannedPods, Settings, SolvePlacement, SolverPlace, SolverRun,
    SolverSettings,
};
pub use shell::journal::SharedLedger;
pub use shell::journal::feed::{DecisionFeed, FeedLine};
pub use shell::metrics::Metrics;
pub use shell::model::paging::for_each_listed;
pub use watches::{WATCH_TIMEOUT_SECONDS, WatchBackoff};
pub use wiring::{ControllerActivity, Controllers, ControllersConfig, ControllersHooks};
