//! One step of a drain: which pods to evict, which to delete outright, and whether it is done.
//!
//! Pure: the shell calls the eviction API and counts. Answers to Karpenter's
//! `node/termination/terminator/terminator.go`.

use std::cmp::Reverse;
use std::sync::Arc;

use hooks::columns::saturated;
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey};

/// The drain is not called done earlier than this after it began, to catch pods bound late.
const UNDISTURBED_SECONDS: i64 = 5;

/// Everything that a drain step knows.
#[derive(Debug, Clone, Copy)]
pub struct DrainInput<'a> {
    /// Pods bound to the node.
    pub pods: &'a [Arc<Pod>],
    /// When the node must be gone, from the claim's annotation.
    pub deadline: Option<Timestamp>,
    /// When the drain began.
    pub draining_since: Timestamp,
    /// Moment of the step.
    pub now: Timestamp,
}

/// How far a drain is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drain {
    /// Nothing is waited for and the settling time has passed.
    Done,
    /// Pods are still waited for, or the settling time has not passed.
    Draining(DrainStep),
}

/// Work that a drain step asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DrainStep {
    /// Pods to evict through the API, which honours PodDisruptionBudgets; the largest first.
    pub evict: Vec<PodRef>,
    /// Pods to delete, whatever protects them.
    pub delete: Vec<ForcedDelete>,
    /// Pods the drain waits for, these included.
    pub waiting: Vec<PodKey>,
}

/// A pod of which another with the same name must not be hit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// Namespace and name of the pod.
    pub key: PodKey,
    /// UID, as a precondition.
    pub uid: String,
}

/// A pod that has to go to meet the deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForcedDelete {
    pub pod: PodRef,
    /// Seconds left to the pod until the deadline, at least one.
    pub grace_period_seconds: u32,
}

/// The four groups, strictly one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DrainGroup {
    Plain,
    PlainDaemon,
    Critical,
    CriticalDaemon,
}

/// Works out the step.
pub fn drain_step(input: &DrainInput<'_>) -> Drain {
    let DrainInput {
        pods,
        deadline,
        draining_since,
        now,
    } = *input;
    let waiting: Vec<&Arc<Pod>> = pods.iter().filter(|pod| pod.is_waited_for(now)).collect();
    let is_undisturbed = now.duration_since(draining_since).as_secs() >= UNDISTURBED_SECONDS;
    if waiting.is_empty() && is_undisturbed {
        return Drain::Done;
    }
    let delete: Vec<ForcedDelete> = deadline
        .into_iter()
        .flat_map(|deadline| {
            waiting
                .iter()
                .filter_map(move |pod| forced(pod, deadline, now))
        })
        .collect();
    let first = waiting.iter().map(|pod| group(pod)).min();
    let evict = waiting
        .iter()
        .filter(|pod| Some(group(pod)) == first && pod.is_evictable(now))
        .filter(|pod| !delete.iter().any(|it| it.pod.key == pod.key));
    let mut evict: Vec<&Arc<Pod>> = evict.copied().collect();
    // The small find room wherever they come, but take that of the large if they come first.
    evict.sort_by_key(|pod| Reverse(pod.size()));
    Drain::Draining(DrainStep {
        evict: evict.into_iter().map(|pod| reference(pod)).collect(),
        delete,
        waiting: waiting.iter().map(|pod| pod.key.clone()).collect(),
    })
}

fn group(pod: &Pod) -> DrainGroup {
    match (pod.is_critical(), pod.is_owned_by_daemon_set()) {
        (false, false) => DrainGroup::Plain,
        (false, true) => DrainGroup::PlainDaemon,
        (true, false) => DrainGroup::Critical,
        (true, true) => DrainGroup::CriticalDaemon,
    }
}

/// A pod must start to end its own grace period before the deadline, or it would be cut short.
fn forced(pod: &Pod, deadline: Timestamp, now: Timestamp) -> Option<ForcedDelete> {
    let grace = SignedDuration::from_secs(pod.shape.termination_grace_period_seconds?);
    if deadline.checked_sub(grace).is_ok_and(|start| now <= start) {
        return None;
    }
    // One that is going anyway is only hurried if it would outlive the deadline.
    if pod.deletion_timestamp.is_some_and(|end| end <= deadline) {
        return None;
    }
    Some(ForcedDelete {
        pod: reference(pod),
        grace_period_seconds: saturated(deadline.duration_since(now).as_secs().max(1)),
    })
}

fn reference(pod: &Pod) -> PodRef {
    PodRef {
        key: pod.key.clone(),
        uid: pod.uid.clone(),
    }
}

#[cfg(test)]
mod tests;
