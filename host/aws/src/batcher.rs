//! Merges requests that arrive close together into one AWS call.
//!
//! Windows run on tokio's timers, so they also run in virtual time. It knows nothing about what it
//! merges. Answers to Karpenter's `pkg/batcher/batcher.go`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locks::lock;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::metrics::AwsMetrics;

/// When a window closes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchWindow {
    /// After this long without a new request.
    pub(crate) idle: Duration,
    /// After this long in any case.
    pub(crate) max: Duration,
    /// When it holds this many requests, which is also how many go into one call.
    pub(crate) items_max: usize,
}

/// The call behind a batcher.
#[async_trait]
pub(crate) trait BatchCall: Send + Sync + 'static {
    type In: Send + 'static;
    type Out: Send + 'static;

    /// Requests of one bucket go into one call.
    fn bucket(&self, request: &Self::In) -> String;

    /// Lets a request that waits share with the first of its bucket what they have in common.
    fn share(&self, _first: &Self::In, _request: &mut Self::In) {}

    /// Answers every request, in order.
    async fn call(&self, requests: Vec<Self::In>) -> Vec<Self::Out>;
}

type WaitingCall<C> = (<C as BatchCall>::In, oneshot::Sender<<C as BatchCall>::Out>);

/// What a window holds, by bucket.
type BatchBuckets<C> = BTreeMap<String, Vec<WaitingCall<C>>>;

/// Collects requests for one call.
pub(crate) struct CallBatcher<C: BatchCall> {
    shared: Arc<SharedBatcher<C>>,
}

struct SharedBatcher<C: BatchCall> {
    name: &'static str,
    metrics: AwsMetrics,
    call: Arc<C>,
    window: BatchWindow,
    waiting: Mutex<BatchBuckets<C>>,
    arrived: Notify,
}

impl<C: BatchCall> CallBatcher<C> {
    /// Counts its batches under the name.
    pub(crate) fn new(
        call: Arc<C>,
        window: BatchWindow,
        name: &'static str,
        metrics: &AwsMetrics,
    ) -> Self {
        let waiting = Mutex::new(BatchBuckets::<C>::new());
        Self {
            shared: Arc::new(SharedBatcher {
                name,
                metrics: metrics.clone(),
                call,
                window,
                waiting,
                arrived: Notify::new(),
            }),
        }
    }

    /// Joins the open window, or opens one, and waits for the answer; `None` if the call died.
    pub(crate) async fn submit(&self, mut request: C::In) -> Option<C::Out> {
        let (sender, receiver) = oneshot::channel();
        let bucket = self.shared.call.bucket(&request);
        let is_first = {
            let mut waiting = lock(&self.shared.waiting);
            let is_first = waiting.is_empty();
            let bucket = waiting.entry(bucket).or_default();
            if let Some((first, _)) = bucket.first() {
                self.shared.call.share(first, &mut request);
            }
            bucket.push((request, sender));
            is_first
        };
        if is_first {
            // The window must outlive the caller that happened to open it.
            tokio::spawn(SharedBatcher::run_window(Arc::clone(&self.shared)));
        } else {
            self.shared.arrived.notify_one();
        }
        receiver.await.ok()
    }
}

impl<C: BatchCall> SharedBatcher<C> {
    async fn run_window(self: Arc<Self>) {
        let opened = Instant::now();
        let closes = opened + self.window.max;
        while self.held() < self.window.items_max {
            let idle_ends = (Instant::now() + self.window.idle).min(closes);
            if tokio::time::timeout_at(idle_ends, self.arrived.notified())
                .await
                .is_err()
            {
                break;
            }
        }
        self.metrics.observe_batch(self.name, opened.elapsed());
        let buckets = std::mem::take(&mut *lock(&self.waiting));
        let calls = buckets
            .into_values()
            .map(|members| self.run_bucket(members));
        futures::future::join_all(calls).await;
    }

    /// Number of requests that wait.
    fn held(&self) -> usize {
        lock(&self.waiting).values().map(Vec::len).sum()
    }

    /// More can have arrived than fit into one call: what comes while the window closes is still of it.
    async fn run_bucket(&self, members: Vec<WaitingCall<C>>) {
        let mut members = members.into_iter();
        let calls = std::iter::from_fn(|| {
            let some: Vec<_> = members.by_ref().take(self.window.items_max).collect();
            (!some.is_empty()).then(|| self.run_call(some))
        });
        futures::future::join_all(calls).await;
    }

    async fn run_call(&self, members: Vec<WaitingCall<C>>) {
        let (requests, senders): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        self.metrics.observe_call(self.name, requests.len());
        let answers = self.call.call(requests).await;
        for (sender, answer) in senders.into_iter().zip(answers) {
            // A caller that gave up needs no answer.
            drop(sender.send(answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct RecordingCall(Mutex<Vec<Vec<u32>>>);

    #[async_trait]
    impl BatchCall for RecordingCall {
        type In = u32;
        type Out = u32;

        fn bucket(&self, request: &u32) -> String {
            (request % 2).to_string()
        }

        async fn call(&self, requests: Vec<u32>) -> Vec<u32> {
            lock(&self.0).push(requests.clone());
            requests.into_iter().map(|request| request * 10).collect()
        }
    }

    fn batcher(items_max: usize) -> (Arc<RecordingCall>, CallBatcher<RecordingCall>) {
        let call = Arc::new(RecordingCall(Mutex::new(Vec::new())));
        let window = BatchWindow {
            idle: Duration::from_millis(35),
            max: Duration::from_secs(1),
            items_max,
        };
        let batcher = CallBatcher::new(Arc::clone(&call), window, "test", &AwsMetrics::default());
        (call, batcher)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_window_share_a_call_per_bucket() {
        let (call, batcher) = batcher(1000);
        let answers = futures::future::join_all((0..5).map(|n| batcher.submit(n))).await;
        assert_eq!(answers, [0, 10, 20, 30, 40].map(Some));
        assert_eq!(*lock(&call.0), vec![vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(batcher.submit(7).await, Some(70));
        assert_eq!(lock(&call.0).len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_window_closes_at_once() {
        let (call, batcher) = batcher(2);
        let started = Instant::now();
        futures::future::join_all([0, 2].map(|n| batcher.submit(n))).await;
        assert!(started.elapsed() < Duration::from_millis(35));
        assert_eq!(*lock(&call.0), vec![vec![0, 2]]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_much_for_one_call_goes_into_several() {
        let (call, batcher) = batcher(2);
        let requests = [0, 2, 4, 6, 8];
        let answers = futures::future::join_all(requests.map(|n| batcher.submit(n))).await;
        assert_eq!(answers, requests.map(|n| Some(n * 10)));
        assert_eq!(*lock(&call.0), vec![vec![0, 2], vec![4, 6], vec![8]]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_stream_is_cut_at_the_maximum() {
        let (call, batcher) = batcher(1000);
        let stream = (0..60).map(|n| {
            let batcher = &batcher;
            async move {
                tokio::time::sleep(Duration::from_millis(u64::from(n) * 30)).await;
                batcher.submit(n * 2).await
            }
        });
        futures::future::join_all(stream).await;
        assert_eq!(lock(&call.0).len(), 2);
    }
}
