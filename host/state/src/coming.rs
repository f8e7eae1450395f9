//! Pods that are about to be created: what ReplicaSets, StatefulSets, Jobs and ReplicationControllers lack.
//!
//! Controllers create pods one after the other, so a burst reaches us as a stream, and nodes bought for its beginning
//! suit the rest badly. What is asked for and not there yet is planned together with what is there, as pods that the
//! API server does not know, for as long as pods keep coming and nothing refuses them; each that comes takes the place
//! of one of them. A node that awaits some counts as nominated, so that consolidation leaves it alone. Answers to no
//! file of Karpenter.

mod gather;
mod key;
pub(crate) mod owned;
mod places;

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::{NodeRef, ObjectKey};
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey};

use crate::cluster::Data;
use crate::snapshot::Snapshot;
use crate::workloads::{KeptWorkload, WorkloadKind};
use key::{numbered, prefix};
use owned::{Owned, expected, missing};
use places::places;

pub use gather::gather;
pub use key::is_coming;

/// A controller none of whose pods came for as long as this is not believed any more.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);

/// While pods of others keep coming it may still wait for its turn, up to this long.
const PATIENCE_IN_A_STREAM: SignedDuration = SignedDuration::from_mins(5);

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
    let workloads = snapshot.workloads().all.iter();
    let mut coming = Vec::new();
    for ((kind, key), kept) in workloads.filter(|(_, it)| it.creates_pods) {
        let owned = snapshot.data.owned.get(&kept.uid);
        let missing = missing(kept, owned);
        if missing > 0 && is_believed(&snapshot.data, kept, owned, now) {
            coming.extend(pods_of(snapshot, *kind, key, kept, missing));
        }
    }
    coming
}

/// Nodes that wait for such pods.
pub fn awaiting_nodes(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<NodeRef> {
    let coming = coming_pods(snapshot, now).into_iter();
    coming.filter_map(|it| it.place).collect()
}

/// Whether the claim's node waits for such pods.
pub(crate) fn is_awaiting(snapshot: &Snapshot, claim: &str, now: Timestamp) -> bool {
    let node = NodeRef::claim(claim);
    snapshot.data.places.at(&node).any(is_coming) && awaiting_nodes(snapshot, now).contains(&node)
}

fn is_believed(data: &Data, kept: &KeptWorkload, owned: Option<&Owned>, now: Timestamp) -> bool {
    let newest = owned.and_then(|it| it.newest.as_ref()).map(|(at, _)| *at);
    let sign = newest.map_or(kept.changed_at, |at| at.max(kept.changed_at));
    let within = |since: Timestamp, patience| now.duration_since(since) <= patience;
    let is_stream = data.last_birth_at.is_some_and(|at| within(at, PATIENCE));
    within(sign, PATIENCE) || (is_stream && within(sign, PATIENCE_IN_A_STREAM))
}

/// Those with a place keep their names; the others take the numbers that are free.
fn pods_of(
    snapshot: &Snapshot,
    kind: WorkloadKind,
    key: &ObjectKey,
    kept: &KeptWorkload,
    missing: usize,
) -> Vec<ComingPod> {
    let Some(shape) = expected(kept, snapshot.data.owned.get(&kept.uid)) else {
        return Vec::new();
    };
    let prefix = prefix(kind.name(), key);
    let is_open = |place: &NodeRef| {
        let is_known = matches!(place, NodeRef::Claim(name) if snapshot.has_claim(name));
        let node = snapshot.find(place);
        is_known || node.is_some_and(|it| !it.is_marked_for_deletion())
    };
    let placed = places(&snapshot.data, &prefix).filter(|(_, place)| is_open(place));
    let placed: Vec<(PodKey, NodeRef)> = placed
        .take(missing)
        .map(|(key, place)| (key.clone(), place.clone()))
        .collect();
    let taken: BTreeSet<&PodKey> = placed.iter().map(|(key, _)| key).collect();
    let numbered = (0_usize..).map(|number| numbered(&prefix, number));
    let free: Vec<PodKey> = numbered
        .filter(|it| !taken.contains(it))
        .take(missing - placed.len())
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
