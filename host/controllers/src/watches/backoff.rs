//! How long a watch that failed is left alone.
//!
//! It only counts: the watch waits. Answers to the back-off of client-go's reflector.

use std::time::Duration;

use kube::runtime::utils::Backoff;

/// Doubling delays without jitter: equal runs stay equal. For a watch of kube's runtime, whose combinator starts the
/// delays over with everything that is no error.
#[derive(Debug)]
pub struct WatchBackoff {
    next: Duration,
    /// Whether anything was told since the last delay.
    was_told: bool,
}

impl WatchBackoff {
    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(30);
}

impl Default for WatchBackoff {
    fn default() -> Self {
        Self {
            next: Self::FIRST,
            was_told: false,
        }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let delay = self.next;
        self.next = (delay * 2).min(Self::LONGEST);
        self.was_told = false;
        Some(delay)
    }
}

impl Backoff for WatchBackoff {
    /// The first thing told after a delay does not count: it is the `Init` of the next list, which the watcher tells
    /// before the API server is asked.
    fn reset(&mut self) {
        if std::mem::replace(&mut self.was_told, true) {
            self.next = Self::FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
    use kube::runtime::WatchStreamExt as _;
    use kube::runtime::watcher::{Error, Event};
    use tokio::time::Instant;

    use super::*;

    type Told = Result<Event<()>, Error>;

    const INIT: fn() -> Told = || Ok(Event::Init);
    const DONE: fn() -> Told = || Ok(Event::InitDone);
    const CHANGE: fn() -> Told = || Ok(Event::Apply(()));
    const FAILURE: fn() -> Told = || Err(Error::NoResourceVersion);

    /// Milliseconds after the first at which the last is told.
    async fn last_told(events: &[fn() -> Told]) -> u128 {
        let start = Instant::now();
        let events = stream::iter(events.iter().map(|it| it()));
        let told = events.backoff(WatchBackoff::default());
        told.map(|_| start.elapsed().as_millis())
            .collect::<Vec<_>>()
            .await
            .pop()
            .unwrap_or_default()
    }

    #[tokio::test(start_paused = true)]
    async fn lists_that_fail_are_asked_for_less_and_less() {
        let mut events = Vec::new();
        let mut told = Vec::new();
        for _ in 0..9 {
            events.extend([INIT, FAILURE]);
            told.push(last_told(&events).await);
        }
        let delays: Vec<u128> = told.windows(2).map(|it| it[1] - it[0]).collect();
        assert_eq!(
            delays,
            [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_or_a_change_starts_the_delays_over() {
        let fails_twice = [INIT, FAILURE, INIT, FAILURE];
        for told in [&[INIT, DONE], &[CHANGE, CHANGE]] {
            let events = [&fails_twice, told as &[_], &[FAILURE, INIT]].concat();
            assert_eq!(last_told(&events).await, 500 + 1_000 + 500);
        }
    }
}
