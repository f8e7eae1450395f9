//! The one model of the cluster, its snapshots, and the ledger of decisions.
//!
//! Answers to Karpenter's `pkg/controllers/state`. [`Cluster::apply`] is the only mutation. Nothing here
//! may read a clock, talk to an API or decide anything: it holds facts and derives values from them.

pub mod ledger;
