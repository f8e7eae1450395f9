//! The one model of the cluster, its snapshots, and the ledger of decisions.
//!
//! Answers to Karpenter's `pkg/controllers/state`. Facts come in by [`Cluster::apply`] alone. Nothing here may read a
//! clock or talk to an API: what is here holds facts and derives values from them. What is planned on it is in the
//! crate `planning`, which nothing here may know.

pub mod cluster;
pub mod devices;
pub mod facts;
pub mod ledger;
pub mod missing_pods;
mod node_terms;
pub mod pod_disruption_budget;
pub mod snapshot;
pub mod state_node;
pub mod volumes;
pub mod workloads;

pub use cluster::{Change, Changes, Cluster, ConsolidationState, Event, Refused, StateError};
pub use snapshot::Snapshot;
pub use state_node::{BoundPods, StateNode};
