//! Pods on their way: from when they are seen pending until they are ready.
//!
//! Bounded by the pods that have not started. What a process did not see pending it tells nothing of. Answers to the
//! maps of Karpenter's `pkg/controllers/metrics/pod/controller.go`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;
use locks::lock;
use scheduling::pod::{Pod, PodKey};

use crate::shell::journal::JournalEntry;
use crate::shell::metrics::Metrics;
use crate::shell::metrics::labels::{DynamicResourcesLabel, Series};

/// A pod that has not been ready yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    uid: String,
    /// When it was created.
    pub(crate) created_at: Option<Timestamp>,
    /// Since when a place is known for it, as far as was decided here.
    pub(crate) placed_at: Option<Timestamp>,
    /// Whether it has its node.
    pub(crate) is_bound: bool,
    /// Whether it asks for dynamic resources.
    pub(crate) uses_devices: bool,
}

/// By the keys of pods.
#[derive(Debug, Default)]
pub(crate) struct PodStarts(Mutex<BTreeMap<PodKey, Start>>);

impl PodStarts {
    /// A pod is as this now; answers what is to be told of its start.
    pub(crate) fn observe(&self, pod: &Pod, now: Timestamp) -> Vec<(Start, StartEntry)> {
        let mut starts = self.lock();
        if starts.get(&pod.key).is_some_and(|it| it.uid != pod.uid) {
            starts.remove(&pod.key);
        }
        if pod.is_pending() && !pod.is_ready {
            starts.entry(pod.key.clone()).or_insert_with(|| Start {
                uid: pod.uid.clone(),
                created_at: pod.created_at,
                placed_at: None,
                // When it was bound that is seen so for the first time nobody knows.
                is_bound: pod.node_name.is_some(),
                uses_devices: pod.shape.uses_resource_claims,
            });
        }
        let Some(start) = starts.get_mut(&pod.key) else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        if pod.node_name.is_some() && !start.is_bound {
            start.is_bound = true;
            entries.push((start.clone(), StartEntry::Bound { now }));
        }
        if pod.is_ready {
            entries.push((start.clone(), StartEntry::Ready { now }));
            starts.remove(&pod.key);
        }
        entries
    }

    /// The pod has ended or is gone.
    pub(crate) fn note_end(&self, key: &PodKey) {
        self.lock().remove(key);
    }

    /// A decision found a place for the pod.
    pub(crate) fn note_place(&self, key: &PodKey, now: Timestamp) {
        if let Some(start) = self.lock().get_mut(key) {
            start.placed_at.get_or_insert(now);
        }
    }

    /// A decision found none.
    pub(crate) fn forget_place(&self, key: &PodKey) {
        if let Some(start) = self.lock().get_mut(key) {
            start.placed_at = None;
        }
    }

    /// Tells of each pod that starts.
    pub(crate) fn each(&self, mut tell: impl FnMut(&PodKey, &Start)) {
        for (key, start) in self.lock().iter() {
            tell(key, start);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PodKey, Start>> {
        lock(&self.0)
    }
}

/// How far a pod came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartEntry {
    /// It has its node.
    Bound {
        /// Moment of the entry.
        now: Timestamp,
    },
    /// Its condition Ready is True.
    Ready {
        /// Moment of the entry.
        now: Timestamp,
    },
}

impl JournalEntry for StartEntry {
    type Subject = Start;

    fn measure(&self, start: &Start, metrics: &Metrics) {
        let since =
            |from: Timestamp, now: Timestamp| now.duration_since(from).as_secs_f64().max(0.0);
        match *self {
            Self::Bound { now } => {
                let series = Series(DynamicResourcesLabel(start.uses_devices.to_string()));
                for (histograms, from) in [
                    (&metrics.pod_bound_seconds, start.created_at),
                    (&metrics.pod_provisioning_bound_seconds, start.placed_at),
                ] {
                    if let Some(from) = from {
                        histograms.get_or_create(&series).observe(since(from, now));
                    }
                }
            }
            Self::Ready { now } => {
                let none = Series(());
                if let Some(from) = start.created_at {
                    let seconds = metrics.pod_startup_seconds.get_or_create(&none);
                    seconds.observe(since(from, now));
                }
                if let Some(from) = start.placed_at {
                    let seconds = &metrics.pod_provisioning_startup_seconds;
                    seconds.get_or_create(&none).observe(since(from, now));
                }
            }
        }
    }
}
