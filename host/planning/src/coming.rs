//! Pods that are about to be created: what ReplicaSets, StatefulSets, Jobs and ReplicationControllers lack.
//!
//! Controllers create pods one after the other, so a burst reaches us as a stream, and nodes bought for its beginning
//! suit the rest badly. What is asked for and not there yet is planned together with what is there, as pods that the
//! API server does not know, for as long as pods keep coming and nothing refuses them; each that comes takes the place
//! of one of them. A node that awaits some counts as nominated, so that consolidation leaves it alone. Answers to no
//! file of Karpenter.

mod gather;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use apis::NodeRef;
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey};
use state::Snapshot;
use state::missing_pods::{MissingPods, is_coming};

pub use gather::gather;

/// A controller none of whose pods came for as long as this is not believed any more.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// While pods of others keep coming it may still wait for its turn, up to this long.
const PATIENCE_IN_A_STREAM: SignedDuration = SignedDuration::from_mins(5);

/// More pods of one controller are not planned at once: the others are, once these are there.
const COMING_MAX: usize = 10_000;

/// A pod that is about to be created.
#[derive(Debug, Clone)]
pub(crate) struct ComingPod {
    /// As it is expected; its name is no pod's.
    pub pod: Arc<Pod>,
    /// The node planned for it.
    pub place: Option<NodeRef>,
}

/// Pods that controllers are believed to create soon, in order of their kind and name.
pub(crate) fn coming_pods(snapshot: &Snapshot, now: Timestamp) -> Vec<ComingPod> {
    let missing = snapshot.missing_pods();
    let believed = missing.filter(|it| is_believed(snapshot, it, now));
    believed.flat_map(|it| pods_of(snapshot, &it)).collect()
}

/// Nodes that wait for such pods.
pub fn awaiting_nodes(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<NodeRef> {
    let coming = coming_pods(snapshot, now).into_iter();
    coming.filter_map(|it| it.place).collect()
}

/// For how long the pod was to be expected, as one that its controller was about to create; zero if it was not. What a
/// controller creates later than it is believed comes in the place of others, and nobody could expect that.
pub fn expected_for(snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> Duration {
    let age = snapshot
        .asked_for_at(pod)
        .map(|at| now.duration_since(at))
        .filter(|it| *it <= PATIENCE_IN_A_STREAM);
    age.and_then(|it| Duration::try_from(it).ok())
        .unwrap_or_default()
}

/// Whether the claim's node waits for such pods.
pub(crate) fn is_awaiting(snapshot: &Snapshot, claim: &str, now: Timestamp) -> bool {
    let node = NodeRef::claim(claim);
    snapshot.placed_at(&node).any(is_coming) && awaiting_nodes(snapshot, now).contains(&node)
}

fn is_believed(snapshot: &Snapshot, missing: &MissingPods<'_>, now: Timestamp) -> bool {
    let within = |since: Timestamp, patience| now.duration_since(since) <= patience;
    let last_birth_at = snapshot.last_birth_at();
    let is_stream = last_birth_at.is_some_and(|at| within(at, PATIENCE));
    within(missing.last_sign_at, PATIENCE)
        || (is_stream && within(missing.last_sign_at, PATIENCE_IN_A_STREAM))
}

/// Those with a place keep their names; the others take the numbers that are free.
fn pods_of(snapshot: &Snapshot, missing: &MissingPods<'_>) -> Vec<ComingPod> {
    let Some(shape) = missing.shape else {
        return Vec::new();
    };
    let count = missing.count.min(COMING_MAX);
    let is_open = |place: &NodeRef| {
        let is_known = matches!(place, NodeRef::Claim(name) if snapshot.has_claim(name));
        let node = snapshot.find(place);
        is_known || node.is_some_and(|it| !it.is_marked_for_deletion())
    };
    let placed = missing.places().filter(|(_, place)| is_open(place));
    let placed: Vec<(PodKey, NodeRef)> = placed
        .take(count)
        .map(|(key, place)| (key.clone(), place.clone()))
        .collect();
    let taken: BTreeSet<&PodKey> = placed.iter().map(|(key, _)| key).collect();
    let numbered = (0_usize..).map(|number| missing.key(number));
    let free: Vec<PodKey> = numbered
        .filter(|it| !taken.contains(it))
        .take(count - placed.len())
        .collect();
    let free = free.into_iter().map(|key| (key, None));
    let placed = placed.into_iter().map(|(key, place)| (key, Some(place)));
    let all = placed.chain(free);
    let coming = |(key, place): (PodKey, _)| {
        let pod = Pod::unknown(key.clone(), key.name, Arc::clone(shape));
        let pod = Arc::new(pod);
        ComingPod { pod, place }
    };
    all.map(coming).collect()
}

#[cfg(test)]
mod tests;
