//! The wall clock as an injected thing, so that the whole binary also runs in simulated time.
//!
//! Answers to `k8s.io/utils/clock`, which Karpenter is handed in the same way.

use jiff::Timestamp;

/// Tells the time of day. The operator injects the system's clock, the simulator its own.
///
/// Timers are not part of it: the shells use `tokio::time`, which the simulator pauses.
pub trait Clock: Send + Sync {
    /// The present moment by this clock.
    fn now(&self) -> Timestamp;
}
