//! The one model of the cluster, its snapshots, and the ledger of decisions.
//!
//! Answers to Karpenter's `pkg/controllers/state`. Facts come in by [`Cluster::apply`] alone. Nothing here may read a
//! clock or talk to an API: what is here holds facts and derives values from them. What is planned on top of a solve
//! is decided here as well, because it is about the model alone: which pods are told their place and when nodes open
//! ([`pod_nomination`]), which pods are believed to come and on how few nodes they are gathered ([`coming`]), and which
//! of equal pods goes where ([`queue_order`]).

pub mod capacity_buffer;
pub mod cluster;
pub mod coming;
pub mod default_spread;
pub mod devices;
pub mod facts;
pub mod ledger;
mod node_terms;
pub mod pod_disruption_budget;
pub mod pod_nomination;
pub mod provisioning;
pub mod queue_order;
pub mod scheduler_config;
pub mod snapshot;
pub mod state_node;
pub mod volumes;
pub mod workloads;

pub use cluster::{Change, Changes, Cluster, ConsolidationState, Event, Refused, StateError};
pub use snapshot::Snapshot;
pub use state_node::{BoundPods, StateNode};
