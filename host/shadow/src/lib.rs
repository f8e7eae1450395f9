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
pub use node_class::{STAND_IN, StandIn};
pub use rbac::cluster_role;
pub use report::{Figures, Observed, Report, Requests};
pub use slim::slim;
pub use tally::{BoughtOffering, FleetTally, Happening};

use apis::ObjectKey;
use serde_json::Value;

/// Namespace and name of an object.
pub fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}

/// The controller of an object, as its owner reference.
pub(crate) fn controller_of(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|it| it["controller"] == true)
}

/// A label of an object.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The UID of an object.
pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
