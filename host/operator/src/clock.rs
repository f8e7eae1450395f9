//! The system's clock: the one place that reads the time of day.

use cloudprovider::Clock;
use jiff::Timestamp;

/// The operating system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The time of day at which a simulated world in real time begins.
pub(crate) fn wall_now() -> Timestamp {
    Timestamp::now()
}
