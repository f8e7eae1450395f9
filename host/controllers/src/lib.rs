//! The shells: watches become facts of the cluster model, and every controller observes, decides and applies.
//!
//! Answers to Karpenter's `pkg/controllers`. Depends on no cloud and no policy engine; both come in through ports.
//! Time comes from the injected clock and from `tokio::time` only, so that all of it runs in simulated time as well.

mod capacity_buffer;
mod capacity_reservation;
mod claim_names;
mod controllers;
mod deletion_costs;
mod error;
mod feed;
mod instance_status;
mod interruption;
mod journal;
mod launching;
mod managed;
mod measured_provider;
mod metrics;
mod model;
mod node;
mod node_capacity;
mod node_claim;
mod node_class;
mod node_overlay;
mod node_pool;
mod nomination;
mod observability;
mod paging;
mod passes;
mod patching;
mod pod_ledger;
mod pod_starts;
mod policy_binding;
mod provisioning;
mod queue_loads;
pub mod rbac;
mod recorder;
mod references;
mod runtime;
mod settings;
mod shell;
mod sold_types;
mod static_capacity;
mod status_conditions;
mod turn;
mod voluntary_disruption;
mod watches;
mod work_queue;

mod writer;

pub use controllers::{ControllerActivity, Controllers, ControllersConfig, ControllersHooks};
pub use feed::{DecisionFeed, FeedLine};
pub use journal::SharedLedger;
pub use metrics::{Labels, Metrics};
pub use observability::StateMetrics;
pub use paging::for_each_listed;
pub use policy_binding::{NoPolicies, POLICY_LABEL, STATUS_ANNOTATION, source_of};
pub use settings::{
    FeatureGates, MinValuesPolicy, NominatePlannedPods, Packing, PreferencePolicy, Settings,
    SolvePlacement, parse_scheduler_config,
};
pub use voluntary_disruption::compiled as compiled_repair_policies;
