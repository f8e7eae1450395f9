//! What several controllers remember together: what they did themselves and no object says, or what was told them last.
//!
//! Each note is a file with a bound of its own. They are kept, not decided; all are lost with the process, and whoever
//! reads one must do without.

pub(crate) mod launching;
pub(crate) mod overlays;
pub(crate) mod passes;
pub(crate) mod pod_ledger;
pub(crate) mod pod_starts;
pub(crate) mod queue_loads;
pub(crate) mod sold_types;
pub(crate) mod static_pending;
