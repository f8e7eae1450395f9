//! Collects triggers into batches: a batch ends when nothing new came for a while, or after a longest time. One that
//! goes on may be looked into meanwhile. What was to be expected when the batch was last added to does not prolong it:
//! it is planned with the rest.
//!
//! Answers to `pkg/controllers/provisioning/batcher.go`.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use locks::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Why the wait for a batch is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Batch {
    /// It is complete; what it held is not kept.
    Complete,
    /// It goes on, and more will come.
    GoesOn,
}

/// The batch being collected.
#[derive(Debug, Default)]
struct OpenBatch {
    elements: BTreeSet<String>,
    /// When the first element came, and the last that was *new* and not to be expected.
    bounds: Option<(Instant, Instant)>,
    /// When it was looked into last.
    looked_at: Option<Instant>,
}

/// Shared by all that trigger and the one provisioner that waits.
#[derive(Debug)]
pub(crate) struct Batcher {
    window: Mutex<OpenBatch>,
    triggered: Notify,
    idle: Duration,
    longest: Duration,
}

impl Batcher {
    pub(crate) fn new(idle: Duration, longest: Duration) -> Self {
        Self {
            window: Mutex::new(OpenBatch::default()),
            triggered: Notify::new(),
            idle,
            longest,
        }
    }

    /// Adds an element by its UID; one that this batch holds already does not extend it.
    pub(crate) fn trigger(&self, uid: &str) {
        self.trigger_expected(uid, Duration::ZERO);
    }

    /// Adds an element that was to be expected for so long; it does not extend a batch that was added to since.
    pub(crate) fn trigger_expected(&self, uid: &str, expected_for: Duration) {
        let mut window = self.lock();
        if window.elements.contains(uid) {
            return;
        }
        window.elements.insert(uid.to_owned());
        let now = Instant::now();
        let is_planned = |last| now.duration_since(last) <= expected_for;
        window.bounds = match window.bounds {
            Some((_, last)) if is_planned(last) => return,
            Some((first, _)) => Some((first, now)),
            None => Some((now, now)),
        };
        drop(window);
        self.triggered.notify_one();
    }

    /// Waits until a batch is complete and starts a new one, or until it is time to look into one that goes on, which
    /// it is each time that a batch could have ended.
    pub(crate) async fn wait(&self) -> Batch {
        loop {
            let triggered = self.triggered.notified();
            let Some((ends_at, look_at)) = self.due() else {
                triggered.await;
                continue;
            };
            let now = Instant::now();
            if ends_at <= now {
                *self.lock() = OpenBatch::default();
                return Batch::Complete;
            }
            if look_at <= now {
                self.lock().looked_at = Some(now);
                return Batch::GoesOn;
            }
            tokio::select! { biased;
                () = tokio::time::sleep_until(ends_at.min(look_at)) => {}
                () = triggered => {}
            }
        }
    }

    /// When the batch ends and when it is to be looked into, if there is one.
    fn due(&self) -> Option<(Instant, Instant)> {
        let window = self.lock();
        let (first, last) = window.bounds?;
        let ends_at = (last + self.idle).min(first + self.longest);
        let looked_at = window.looked_at.unwrap_or(first);
        Some((ends_at, looked_at + self.idle))
    }

    /// Whether a batch is being collected.
    pub(crate) fn is_batching(&self) -> bool {
        self.lock().bounds.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, OpenBatch> {
        lock(&self.window)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn batcher() -> Arc<Batcher> {
        Arc::new(Batcher::new(
            Duration::from_secs(1),
            Duration::from_secs(10),
        ))
    }

    /// Triggers `uids` 900 ms apart and says after how many milliseconds the batch ended.
    async fn batch(uids: &[&'static str]) -> u128 {
        watched_batch(uids).await.0
    }

    /// Triggers `uids` 900 ms apart and says after how many milliseconds the batch ended, and after how many it was
    /// looked into.
    async fn watched_batch(uids: &[&'static str]) -> (u128, Vec<u128>) {
        let (batcher, start) = (batcher(), Instant::now());
        let triggers = async {
            for uid in uids {
                batcher.trigger(uid);
                tokio::time::sleep(Duration::from_millis(900)).await;
            }
            std::future::pending::<()>().await;
        };
        let mut looks = Vec::new();
        let complete = async {
            loop {
                match batcher.wait().await {
                    Batch::Complete => break,
                    Batch::GoesOn => looks.push(start.elapsed().as_millis()),
                }
            }
        };
        tokio::select! { biased;
            () = complete => {}
            () = triggers => {}
        }
        (start.elapsed().as_millis(), looks)
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_goes_on_is_looked_into() {
        assert_eq!(watched_batch(&["a"]).await, (1000, vec![]));
        let (millis, looks) = watched_batch(&["a", "b", "c", "d"]).await;
        assert_eq!((millis, looks), (3700, vec![1000, 2000, 3000]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_ends_one_second_after_the_last_new_element() {
        assert_eq!(batch(&["a"]).await, 1000);
        assert_eq!(batch(&["a", "b", "c"]).await, 2800);
    }

    #[tokio::test(start_paused = true)]
    async fn an_element_seen_before_does_not_extend_the_batch() {
        assert_eq!(batch(&["a", "a", "a"]).await, 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn an_element_that_was_to_be_expected_does_not_extend_the_batch() {
        for (expected_for, ends_after) in [(900, 1000), (899, 1900), (0, 1900)] {
            let (batcher, start) = (batcher(), Instant::now());
            batcher.trigger("a");
            tokio::time::sleep(Duration::from_millis(900)).await;
            batcher.trigger_expected("b", Duration::from_millis(expected_for));
            while batcher.wait().await == Batch::GoesOn {}
            assert_eq!(start.elapsed().as_millis(), ends_after, "{expected_for}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_never_lasts_longer_than_ten_seconds() {
        let uids: Vec<&'static str> = vec![
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o",
        ];
        assert_eq!(batch(&uids).await, 10_000);
    }
}
