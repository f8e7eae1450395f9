//! Journal entries of a NodeClaim's life: who is told, and in which words.
//!
//! Events answer to `pkg/controllers/nodeclaim/lifecycle/events.go` and its neighbours, log lines and metrics to the
//! controllers of `pkg/controllers/nodeclaim`. Reboots have their own, `reboot/entries.rs`.

pub(crate) mod end;
pub(crate) mod launch;
pub(crate) mod running;
