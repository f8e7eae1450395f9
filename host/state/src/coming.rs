//! Pods that are about to be created: what ReplicaSets, StatefulSets, Jobs and ReplicationControllers lack.
//!
//! Controllers create pods one after the other, so a burst reaches us as a stream, and nodes bought for its beginning suit the
//! rest badly. What is asked for and not there yet is planned together with what is there, as pods that the API server does not know,
//! for as long as pods keep coming; each that comes takes the place of one of them. Answers to no file of Karpenter.

mod gather;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Owner, Pod, PodKey, PodShape};

use crate::cluster::Data;
use crate::snapshot::Snapshot;
use crate::workloads::{Kept, WorkloadKind};

pub use gather::gather;

/// A controller none of whose pods came for as long as this is not believed any more.
const PATIENCE: SignedDuration = SignedDuration::from_secs(15);
/// While pods of others keep coming it may still wait for its turn, up to this long.
const PATIENCE_IN_A_STREAM: SignedDuration = SignedDuration::from_mins(5);
/// No name of a real pod holds it.
const MARK: char = '#';

/// The pods of one controller that are there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owned {
    /// How many.
    pub(crate) pods: u32,
    /// When the latest was first seen, and what it asks for: admission may have changed the template.
    pub(crate) newest: Option<(Timestamp, Arc<PodShape>)>,
}

/// A pod that is about to be created.
#[derive(Debug, Clone)]
pub struct ComingPod {
    /// As it is expected; its name is no pod's.
    pub pod: Arc<Pod>,
    /// The node planned for it, by the name of its Node or NodeClaim.
    pub place: Option<Arc<str>>,
}

/// Whether the key is that of a pod about to be created rather than of a real one.
pub fn is_coming(pod: &PodKey) -> bool {
    pod.name.contains(MARK)
}

/// Pods that controllers are believed to create soon, in order of their kind and name.
pub fn coming_pods(snapshot: &Snapshot, now: Timestamp) -> Vec<ComingPod> {
    let workloads = snapshot.workloads().all.iter();
    let mut coming = Vec::new();
    for ((kind, key), kept) in workloads.filter(|(_, it)| it.creates_pods) {
        let owned = snapshot.data.owned.get(&kept.uid);
        let missing = missing(kept, owned);
        if missing > 0 && is_believed(&snapshot.data, kept, owned, now) {
            coming.extend(pods_of(snapshot, (*kind, key), kept, missing));
        }
    }
    coming
}

/// Nodes that wait for such pods, by the name of their Node or NodeClaim.
pub fn awaiting_nodes(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<Arc<str>> {
    let coming = coming_pods(snapshot, now).into_iter();
    coming.filter_map(|it| it.place).collect()
}

/// Whether the claim's node waits for such pods.
pub fn is_awaiting(snapshot: &Snapshot, claim: &str, now: Timestamp) -> bool {
    let mut places = snapshot.data.places.iter();
    places.any(|(key, place)| **place == *claim && is_coming(key))
        && awaiting_nodes(snapshot, now).contains(claim)
}

fn missing(kept: &Kept, owned: Option<&Owned>) -> usize {
    let there = owned.map_or(0, |it| it.pods);
    let wanted = u32::try_from(kept.replicas).unwrap_or_default();
    usize::try_from(wanted.saturating_sub(there)).unwrap_or_default()
}

fn is_believed(data: &Data, kept: &Kept, owned: Option<&Owned>, now: Timestamp) -> bool {
    let newest = owned.and_then(|it| it.newest.as_ref()).map(|(at, _)| *at);
    let sign = newest.map_or(kept.changed_at, |at| at.max(kept.changed_at));
    let within = |since: Timestamp, patience| now.duration_since(since) <= patience;
    let is_stream = data.last_birth_at.is_some_and(|at| within(at, PATIENCE));
    within(sign, PATIENCE) || (is_stream && within(sign, PATIENCE_IN_A_STREAM))
}

fn expected<'a>(kept: &'a Kept, owned: Option<&'a Owned>) -> Option<&'a Arc<PodShape>> {
    let newest = owned.and_then(|it| it.newest.as_ref());
    newest
        .map(|(_, shape)| shape)
        .or_else(|| kept.shape.as_ref().ok())
}

/// Those with a place keep their names; the others take the numbers that are free.
fn pods_of(
    snapshot: &Snapshot,
    (kind, key): (WorkloadKind, &PodKey),
    kept: &Kept,
    missing: usize,
) -> Vec<ComingPod> {
    let Some(shape) = expected(kept, snapshot.data.owned.get(&kept.uid)) else {
        return Vec::new();
    };
    let prefix = prefix(kind.name(), key);
    let is_open = |place: &str| {
        let node = snapshot.node(place);
        node.is_some_and(|it| !it.is_marked_for_deletion()) || snapshot.has_claim(place)
    };
    let placed = places(&snapshot.data, &prefix).filter(|(_, place)| is_open(place));
    let placed: Vec<(PodKey, Arc<str>)> = placed
        .take(missing)
        .map(|(key, place)| (key.clone(), Arc::clone(place)))
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

/// What all coming pods of a controller are called, up to their number.
fn prefix(kind: &str, key: &PodKey) -> PodKey {
    PodKey::new(&key.namespace, &format!("{} ({kind}) {MARK}", key.name))
}

/// Numbers sort as they count.
fn numbered(prefix: &PodKey, number: usize) -> PodKey {
    PodKey::new(&prefix.namespace, &format!("{}{number:06}", prefix.name))
}

fn places<'a>(
    data: &'a Data,
    prefix: &'a PodKey,
) -> impl Iterator<Item = (&'a PodKey, &'a Arc<str>)> {
    let following = data.places.range(prefix.clone()..);
    following.take_while(|(key, _)| {
        key.namespace == prefix.namespace && key.name.starts_with(&prefix.name)
    })
}

fn controller(pod: &Pod, owner: &Owner) -> Option<(WorkloadKind, PodKey)> {
    let kind = WorkloadKind::of_owner(&owner.api_version, &owner.kind)?;
    Some((kind, PodKey::new(&pod.key.namespace, &owner.name)))
}

impl Data {
    /// A pod that was not there before: it goes where one of its kind was planned to go.
    pub(crate) fn born(&mut self, now: Timestamp, pod: &Pod) {
        let Some(owner) = pod.shape.owner.as_ref() else {
            return;
        };
        if pod.node_name.is_none() && !pod.is_terminating() {
            self.take_place(pod, owner);
        }
        self.last_birth_at = Some(now);
        if let Some(owned) = Arc::make_mut(&mut self.owned).get_mut(&owner.uid) {
            owned.newest = Some((now, Arc::clone(&pod.shape)));
        }
    }

    /// The last of its pods is gone.
    pub(crate) fn forget_owner(&mut self, pod: &Pod) {
        let Some(owner) = &pod.shape.owner else {
            return;
        };
        let all = Arc::make_mut(&mut self.owned);
        if all.get(&owner.uid).is_some_and(|it| it.pods == 0) {
            all.remove(&owner.uid);
        }
    }

    /// A pod went to a node: if that was planned for another of its kind, that one has its place now.
    pub(crate) fn trade_places(&mut self, pod: &Pod) {
        let owner = pod.shape.owner.as_ref();
        let (Some((kind, key)), Some(node)) =
            (owner.and_then(|it| controller(pod, it)), &pod.node_name)
        else {
            return;
        };
        let tracked = self.node_keys.get(node).and_then(|it| self.nodes.get(it));
        let claim = tracked.and_then(|it| it.claim_name()).map(str::to_owned);
        let is_here = |place: &str| place == node || Some(place) == claim.as_deref();
        let own = self.places.get(&pod.key).cloned();
        if own.as_deref().is_some_and(is_here) {
            return;
        }
        let prefix = prefix(kind.name(), &key);
        let other = places(self, &prefix).find(|(_, place)| is_here(place));
        let Some(other) = other.map(|(key, _)| key.clone()) else {
            return;
        };
        let places = Arc::make_mut(&mut self.places);
        match own {
            Some(place) => places.insert(other, place),
            None => places.remove(&other),
        };
    }

    fn take_place(&mut self, pod: &Pod, owner: &Owner) {
        let Some((kind, key)) = controller(pod, owner) else {
            return;
        };
        let prefix = prefix(kind.name(), &key);
        let Some((planned, place)) = places(self, &prefix).next() else {
            return;
        };
        let (planned, place) = (planned.clone(), Arc::clone(place));
        let kept = self.workloads.find(kind, &key);
        let owned = self.owned.get(&owner.uid);
        let expected = kept.and_then(|kept| expected(kept, owned));
        if expected.is_some_and(|it| it.requests == pod.shape.requests) {
            let places = Arc::make_mut(&mut self.places);
            places.remove(&planned);
            places.insert(pod.key.clone(), place);
        } else {
            // It was planned as something else, and so were the others.
            self.forget_coming((kind, &key), 0);
        }
    }

    /// A controller asks for fewer pods than have places.
    pub(crate) fn forget_surplus(&mut self, kind: WorkloadKind, key: &PodKey) {
        let kept = self.workloads.find(kind, key);
        let missing = kept
            .filter(|it| it.creates_pods)
            .map_or(0, |it| missing(it, self.owned.get(&it.uid)));
        self.forget_coming((kind, key), missing);
    }

    fn forget_coming(&mut self, (kind, key): (WorkloadKind, &PodKey), keeping: usize) {
        let prefix = prefix(kind.name(), key);
        let surplus = places(self, &prefix).skip(keeping);
        let surplus: Vec<PodKey> = surplus.map(|(key, _)| key.clone()).collect();
        if !surplus.is_empty() {
            let places = Arc::make_mut(&mut self.places);
            for key in surplus {
                places.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
