//! The one model of the cluster, its snapshots, and the ledger of decisions.
//!
//! Answers to Karpenter's `pkg/controllers/state`. [`Cluster::apply`] is the only mutation. Nothing here
//! may read a clock, talk to an API or decide anything: it holds facts and derives values from them.

pub mod capacity_buffer;
pub mod cluster;
pub mod coming;
pub mod default_spread;
pub mod devices;
pub mod facts;
pub mod ledger;
mod node_terms;
pub mod nomination;
pub mod pod;
pub mod pod_disruption_budget;
pub mod provisioning;
pub mod queue_order;
pub mod snapshot;
pub mod state_node;
pub mod volumes;
pub mod workloads;

pub use cluster::{Change, Changes, Cluster, ConsolidationState, Event, Refused, StateError};
pub use snapshot::Snapshot;
pub use state_node::{BoundPods, StateNode};
