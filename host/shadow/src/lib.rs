//! The shadow of a cluster: a world that starts as the cluster is, has its workloads, and another autoscaler.
//!
//! What is read of the cluster, what becomes of it in the shadow, and what both autoscalers did, as functions from
//! values to values. Asks no cluster and writes to none; the shell around it is `operator`'s `shadow.rs`.

mod account;
mod admitted;
mod digest;
mod gathered;
mod kinds;
mod mirror;
mod node_claim;
mod node_class;
mod object;
mod pods;
mod rbac;
mod report;
mod runs;
mod slim;
mod tally;

pub use account::{Account, ZoneMarket};
pub use gathered::{Gathered, ObjectChange, ToldObject};
pub use kinds::{ReadKind, ReadRow, TABLE};
pub use mirror::{Mirror, MirrorWrite, update};
pub use node_claim::claims_at_start;
pub use node_class::StandIn;
pub use object::key_of;
pub use rbac::cluster_role;
pub use report::{BothSides, Figures, Report, Requests};
pub use slim::slim;
pub use tally::{BoughtOffering, FleetTally, Happening};
