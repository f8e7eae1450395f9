//! How many requests a second the client sends: a bucket that holds `burst` and fills at `qps`, as client-go's.
//!
//! It orders and drops nothing: who asks first goes first, and everybody goes in the end. Answers to client-go's
//! `util/flowcontrol/throttle.go`.

use std::sync::Mutex;
use std::time::Duration;

use locks::lock;
use tokio::time::Instant;

/// Requests a second of client-go where no rate is set.
const QPS_DEFAULT: u32 = 5;
/// Burst of client-go where none is set.
const BURST_DEFAULT: u32 = 10;

/// A bucket of permissions to send.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    interval: Duration,
    /// How far ahead of a steady pace requests may be.
    ahead_max: Duration,
    /// When the next request would be due at a steady pace.
    due: Mutex<Instant>,
}

impl RateLimiter {
    /// As the flags of Karpenter say it: negative is no limit, 0 what client-go takes by itself.
    pub(crate) fn new(qps: i32, burst: i32) -> Option<Self> {
        let qps = match u32::try_from(qps).ok()? {
            0 => QPS_DEFAULT,
            qps => qps,
        };
        let burst = match u32::try_from(burst).unwrap_or(0) {
            0 => BURST_DEFAULT,
            burst => burst,
        };
        let interval = Duration::from_secs(1) / qps;
        Some(Self {
            interval,
            ahead_max: interval * (burst - 1),
            due: Mutex::new(Instant::now()),
        })
    }

    /// Returns once the request may be sent.
    pub(crate) async fn admit(&self) {
        let wait = self.take(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes a permission; how long the one who takes it has to wait.
    fn take(&self, now: Instant) -> Duration {
        let mut due = lock(&self.due);
        let slot = (*due).max(now);
        *due = slot + self.interval;
        slot.saturating_duration_since(now)
            .saturating_sub(self.ahead_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(rate: &RateLimiter, requests: usize) -> Vec<u128> {
        let now = Instant::now();
        (0..requests).map(|_| rate.take(now).as_millis()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        let rate = RateLimiter::new(10, 3).unwrap();
        assert_eq!(waits(&rate, 5), [0, 0, 0, 100, 200]);
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(waits(&rate, 4), [0, 0, 0, 100], "the bucket is full again");
    }

    #[tokio::test(start_paused = true)]
    async fn zero_is_the_default_of_client_go_and_less_is_no_limit() {
        let default = RateLimiter::new(0, 0).unwrap();
        let wanted = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200];
        assert_eq!(waits(&default, 11), wanted);
        assert!(RateLimiter::new(-1, 10).is_none());
    }
}
