//! Rights that the process needs at the API server: one table, from which the roles of the chart are written. What it
//! may watch follows from the rows of `watches.rs`; the rest is in `rbac/rules.rs`.
//!
//! A right that is missing would be found out by a user, and one that is of no use by who took the service account
//! over; so tests compare the table with what is asked (`tests/it/rbac.rs`) and with the chart. Answers to
//! `charts/karpenter/templates/clusterrole-core.yaml`, `clusterrole.yaml` and `role.yaml`.

pub(crate) mod denied;
pub(crate) mod rule;
mod rules;
mod template;

use std::sync::LazyLock;

use crate::watches;

pub use denied::DeniedRequest;
pub use rule::{RbacRule, ResourceAttributes, Role, When};
pub use template::template;

/// Every rule of every role, in the order in which the chart has them.
pub static RULES: LazyLock<Vec<RbacRule>> = LazyLock::new(|| {
    let mut rules = watches::rules();
    rules.extend_from_slice(rules::WRITTEN);
    rules
});
