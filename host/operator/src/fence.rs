//! Whether this process may change anything: the lease as far as this process knows, by its own monotonic clock.
//!
//! It asks nobody. The election moves it, and the clients of the API server and of AWS look at it before each
//! change, so that a process that was frozen, or whose network was cut, changes nothing once another
//! may lead. client-go has no counterpart: it ends the process and hopes that this is soon enough.

use std::sync::{Arc, Mutex};

use locks::lock;
use tokio::time::Instant;

/// Clones share what is known.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    held: Arc<Mutex<LeaseHold>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseHold {
    /// The lease is not held, and another may lead.
    Not,
    /// Nobody else can lead before.
    Until(Instant),
    /// There is no election.
    Always,
}

/// A change was not sent, or its answer not waited for, because another may lead.
#[derive(Debug)]
pub(crate) struct Lapsed;

impl std::fmt::Display for Lapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not sent, or its answer not waited for: this replica does not hold the lease")
    }
}

impl std::error::Error for Lapsed {}

impl Fence {
    /// For a replica that has to be elected first.
    pub(crate) fn closed() -> Self {
        Self::new(LeaseHold::Not)
    }

    /// For a process without election.
    pub(crate) fn open() -> Self {
        Self::new(LeaseHold::Always)
    }

    fn new(held: LeaseHold) -> Self {
        Self {
            held: Arc::new(Mutex::new(held)),
        }
    }

    /// The lease was taken or renewed.
    pub(crate) fn hold_until(&self, end: Instant) {
        self.set(LeaseHold::Until(end));
    }

    /// The lease is given up.
    pub(crate) fn close(&self) {
        self.set(LeaseHold::Not);
    }

    /// Whether changes may be sent now.
    pub(crate) fn is_open(&self) -> bool {
        match *lock(&self.held) {
            LeaseHold::Not => false,
            LeaseHold::Until(end) => Instant::now() < end,
            LeaseHold::Always => true,
        }
    }

    fn set(&self, held: LeaseHold) {
        *lock(&self.held) = held;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_open_for_as_long_as_the_lease_was_renewed() {
        let fence = Fence::closed();
        let seen_by_the_client = fence.clone();
        assert!(!seen_by_the_client.is_open());
        fence.hold_until(Instant::now() + Duration::from_secs(10));
        assert!(seen_by_the_client.is_open());
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!seen_by_the_client.is_open(), "nobody renewed it");
        fence.hold_until(Instant::now() + Duration::from_secs(10));
        fence.close();
        assert!(!seen_by_the_client.is_open(), "it was given up");
        assert!(Fence::open().is_open());
    }
}
