//! A de-duplicating work queue with delays and per-key exponential back-off.
//!
//! It never hands one key to two workers at once, never grows beyond the number of distinct keys, and its
//! order depends on nothing but the order of the calls made to it: no jitter, no hash order, only
//! `tokio::time`. Answers to client-go's `util/workqueue` as controller-runtime uses it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use locks::lock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::Notify;
use tokio::time::Instant;

/// First and longest delay of a key that keeps failing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackOff {
    /// Delay after the first failure; it doubles with each further one.
    pub(crate) first: Duration,
    /// The delay never grows beyond this.
    pub(crate) longest: Duration,
}

impl BackOff {
    /// The framework's default, for controllers that state none.
    pub(crate) const DEFAULT: Self = Self {
        first: Duration::from_millis(5),
        longest: Duration::from_secs(1000),
    };

    fn delay(self, failures: u32) -> Duration {
        let factor = 1_u32
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

/// State of a queue at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct QueueState {
    /// Keys that wait for a worker.
    pub(crate) ready: usize,
    /// Keys that a worker holds.
    pub(crate) processing: usize,
    /// Keys that failed and wait for their next try.
    pub(crate) failing: usize,
    /// Keys whose delay ends within the horizon asked for.
    pub(crate) due_soon: usize,
}

/// How much there is to do at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Keys that wait for a worker.
    pub(crate) waiting: usize,
    /// How long all work has taken that is not done.
    pub(crate) unfinished: Duration,
    /// How long the oldest of it has taken.
    pub(crate) longest: Duration,
}

/// Where a queue counts.
#[derive(Debug)]
pub(crate) struct QueueMeter {
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
    pub(crate) queue_seconds: Histogram,
    pub(crate) work_seconds: Histogram,
}

#[derive(Debug)]
struct WorkQueueState<K> {
    /// With the time at which they were added.
    ready: VecDeque<(K, Instant)>,
    queued: BTreeSet<K>,
    /// With the time at which work began.
    processing: BTreeMap<K, Instant>,
    /// Keys added again while a worker holds them.
    again: BTreeMap<K, Instant>,
    delayed: BTreeMap<(Instant, u64), K>,
    due: BTreeMap<K, (Instant, u64)>,
    failures: BTreeMap<K, u32>,
    sequence: u64,
    adds: u64,
    meter: Option<QueueMeter>,
}

/// The queue. Clones of an `Arc` of it are shared between those who add and the one runner.
#[derive(Debug)]
pub(crate) struct WorkQueue<K> {
    inner: Mutex<WorkQueueState<K>>,
    changed: Notify,
    back_off: BackOff,
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// An empty queue.
    pub(crate) fn new(back_off: BackOff) -> Self {
        let inner = WorkQueueState {
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            processing: BTreeMap::new(),
            again: BTreeMap::new(),
            delayed: BTreeMap::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
            sequence: 0,
            adds: 0,
            meter: None,
        };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            back_off,
        }
    }

    /// Wants `key` worked on as soon as possible.
    pub(crate) fn add(&self, key: K) {
        self.lock().add(key);
        self.changed.notify_one();
    }

    /// Wants `key` worked on unless the queue knows it already, in whatever state: its back-off stands.
    pub(crate) fn add_new(&self, key: K) {
        let mut inner = self.lock();
        let known = inner.queued.contains(&key)
            || inner.processing.contains_key(&key)
            || inner.due.contains_key(&key);
        if !known {
            inner.add(key);
            drop(inner);
            self.changed.notify_one();
        }
    }

    /// Waits for the next key. The caller must hand it back with [`Self::done`].
    pub(crate) async fn next(&self) -> K {
        loop {
            let changed = self.changed.notified();
            let wake_at = {
                let mut inner = self.lock();
                inner.promote(Instant::now());
                if let Some(key) = inner.take() {
                    return key;
                }
                inner.delayed.first_key_value().map(|((at, _), _)| *at)
            };
            match wake_at {
                Some(at) => {
                    tokio::select! { biased;
                        () = changed => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// The worker is through with `key`: it succeeded, and wants to see it again after `requeue_after`, if at all.
    pub(crate) fn done(&self, key: K, requeue_after: Option<Duration>) {
        let mut inner = self.lock();
        inner.failures.remove(&key);
        inner.release(&key);
        // A moment too far off to be told never comes.
        if let Some(at) = requeue_after.and_then(|it| Instant::now().checked_add(it)) {
            inner.delay(key, at);
        }
        drop(inner);
        self.changed.notify_one();
    }

    /// The worker is through with `key`: it failed, and is tried again after the back-off.
    pub(crate) fn failed(&self, key: K) {
        let mut inner = self.lock();
        let failures = inner.failures.entry(key.clone()).or_insert(0);
        *failures = failures.saturating_add(1);
        let delay = self.back_off.delay(*failures);
        inner.release(&key);
        if let Some(meter) = &inner.meter {
            meter.retries.inc();
        }
        inner.delay(key, Instant::now() + delay);
        drop(inner);
        self.changed.notify_one();
    }

    /// Forgets a key altogether, such as when its object is gone.
    pub(crate) fn forget(&self, key: &K) {
        let mut inner = self.lock();
        inner.failures.remove(key);
        inner.undelay(key);
    }

    /// State of the queue; `horizon` says which delayed keys count as due soon.
    pub(crate) fn state(&self, horizon: Duration) -> QueueState {
        let inner = self.lock();
        let end = Instant::now() + horizon;
        QueueState {
            ready: inner.ready.len() + inner.again.len(),
            processing: inner.processing.len(),
            failing: inner.failures.len(),
            due_soon: inner
                .delayed
                .keys()
                .take_while(|(at, _)| *at <= end)
                .count(),
        }
    }

    /// Counts here from now on, and what was added before.
    pub(crate) fn measure(&self, meter: QueueMeter) {
        let mut inner = self.lock();
        meter.adds.inc_by(inner.adds);
        inner.meter = Some(meter);
    }

    /// How much there is to do now.
    pub(crate) fn load(&self) -> Load {
        let (inner, now) = (self.lock(), Instant::now());
        let ages = inner.processing.values().map(|began| now - *began);
        Load {
            waiting: inner.ready.len(),
            unfinished: ages.clone().sum(),
            longest: ages.max().unwrap_or_default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, WorkQueueState<K>> {
        lock(&self.inner)
    }
}

impl<K: Ord + Clone> WorkQueueState<K> {
    fn add(&mut self, key: K) {
        let is_new = if self.processing.contains_key(&key) {
            let is_new = !self.again.contains_key(&key);
            self.again.entry(key).or_insert_with(Instant::now);
            is_new
        } else {
            self.push(key, Instant::now())
        };
        if is_new {
            self.adds += 1;
            if let Some(meter) = &self.meter {
                meter.adds.inc();
            }
        }
    }

    fn push(&mut self, key: K, added_at: Instant) -> bool {
        let is_new = self.queued.insert(key.clone());
        if is_new {
            self.ready.push_back((key, added_at));
        }
        is_new
    }

    fn delay(&mut self, key: K, at: Instant) {
        if self.due.get(&key).is_some_and(|(known, _)| *known <= at) {
            return;
        }
        self.undelay(&key);
        self.sequence += 1;
        self.due.insert(key.clone(), (at, self.sequence));
        self.delayed.insert((at, self.sequence), key);
    }

    fn undelay(&mut self, key: &K) {
        if let Some(slot) = self.due.remove(key) {
            self.delayed.remove(&slot);
        }
    }

    fn promote(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.due.remove(&key);
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let (key, added_at) = self.ready.pop_front()?;
        let now = Instant::now();
        if let Some(meter) = &self.meter {
            meter.queue_seconds.observe((now - added_at).as_secs_f64());
        }
        self.queued.remove(&key);
        // The work about to be done answers every earlier wish for this key.
        self.undelay(&key);
        self.processing.insert(key.clone(), now);
        Some(key)
    }

    fn release(&mut self, key: &K) {
        let began = self.processing.remove(key);
        if let (Some(began), Some(meter)) = (began, &self.meter) {
            meter.work_seconds.observe(began.elapsed().as_secs_f64());
        }
        if let Some(added_at) = self.again.remove(key) {
            self.push(key.clone(), added_at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> WorkQueue<&'static str> {
        WorkQueue::new(BackOff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(4),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_twice_is_handed_out_once() {
        let queue = queue();
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.next().await, "b");
        assert_eq!(queue.state(Duration::ZERO).ready, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_while_held_comes_back_after_release() {
        let queue = queue();
        queue.add("a");
        let key = queue.next().await;
        queue.add("a");
        assert!(
            tokio::time::timeout(Duration::from_mins(1), queue.next())
                .await
                .is_err(),
            "never two workers on one key"
        );
        queue.done(key, None);
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_exponentially_up_to_the_longest() {
        let queue = queue();
        queue.add("a");
        let mut key = queue.next().await;
        let mut delays = Vec::new();
        for _ in 0..5 {
            let failed_at = Instant::now();
            queue.failed(key);
            key = queue.next().await;
            delays.push(failed_at.elapsed().as_secs());
        }
        assert_eq!(delays, [1, 2, 4, 4, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_comes_back_after_its_delay_or_sooner_when_it_changes() {
        let queue = queue();
        let start = Instant::now();
        queue.add("a");
        let key = queue.next().await;
        queue.done(key, Some(Duration::from_secs(5)));
        queue.next().await;
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done("a", Some(Duration::from_secs(5)));
        queue.add("a");
        queue.next().await;
        assert_eq!(start.elapsed().as_secs(), 5, "the change did not wait");
        queue.done("a", None);
        assert_eq!(queue.state(Duration::from_mins(1)), QueueState::default());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_and_what_is_at_work_is_measured() {
        let queue = queue();
        queue.add("a");
        let meter = || QueueMeter {
            adds: Counter::default(),
            retries: Counter::default(),
            queue_seconds: Histogram::new([1.0]),
            work_seconds: Histogram::new([1.0]),
        };
        let (adds, retries) = (Counter::default(), Counter::default());
        queue.measure(QueueMeter {
            adds: adds.clone(),
            retries: retries.clone(),
            ..meter()
        });
        queue.add("b");
        queue.add("b");
        let key = queue.next().await;
        queue.add("a");
        queue.add("a");
        assert_eq!(
            adds.get(),
            3,
            "a before it was measured, b once, and a once more"
        );
        tokio::time::advance(Duration::from_secs(3)).await;
        let load = queue.load();
        assert_eq!((load.waiting, load.longest.as_secs()), (1, 3));
        queue.failed(key);
        assert_eq!((queue.load().waiting, retries.get()), (2, 1));
        assert_eq!(queue.load().unfinished, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_known_to_the_queue_is_not_added_anew() {
        let queue = queue();
        queue.add_new("a");
        let key = queue.next().await;
        queue.failed(key);
        queue.add_new("a");
        assert_eq!(queue.state(Duration::ZERO).ready, 0, "its back-off stands");
    }
}
