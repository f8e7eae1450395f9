//! Policies of the process beside their host: counters, what they did in a decision, the recording of their calls, and
//! those of a cluster that nobody runs here.
//!
//! Asks no policy anything.

pub(crate) mod bindings;
pub(crate) mod metrics;
pub(crate) mod parts;
pub(crate) mod recorder;
pub(crate) mod records;
