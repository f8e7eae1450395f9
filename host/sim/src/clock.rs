//! The world's time: tokio's monotonic clock, which tests pause, dressed as a wall clock.
//!
//! Never reads the machine's wall clock; in real time the caller says what "now" was at the start.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A wall clock that runs with `tokio::time`.
#[derive(Debug, Clone, Copy)]
pub struct SimulatedClock {
    start: Timestamp,
    origin: Instant,
}

impl SimulatedClock {
    /// Midnight at the start of 2026, where virtual worlds begin.
    const EPOCH_SECONDS: i64 = 1_767_225_600;

    /// A clock that shows `start` now and runs from there.
    pub fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            origin: Instant::now(),
        }
    }

    /// A clock for virtual time, starting at 2026-01-01T00:00:00Z.
    pub fn virtual_time() -> Self {
        Self::starting_at(Timestamp::from_second(Self::EPOCH_SECONDS).unwrap_or_default())
    }

    /// Present moment of the simulated world.
    pub fn now(&self) -> Timestamp {
        self.start
            .saturating_add(self.elapsed())
            .unwrap_or(self.start)
    }

    /// Present moment in whole seconds, as Kubernetes writes times.
    pub fn now_seconds(&self) -> Timestamp {
        Timestamp::from_second(self.now().as_second()).unwrap_or(self.start)
    }

    /// How long the world has run.
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// The moment of tokio's clock at which this clock shows `at`; now if that has passed.
    pub(crate) fn instant_at(&self, at: Timestamp) -> Instant {
        let since = at.duration_since(self.start);
        let since = if since < SignedDuration::ZERO {
            Duration::ZERO
        } else {
            since.unsigned_abs()
        };
        self.origin.checked_add(since).unwrap_or(self.origin)
    }
}

impl cloudprovider::Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}
