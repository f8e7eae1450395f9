//! Where pods that wait were placed, and whether the scheduler may still be about to take them there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeRef;
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey, PodShape};
use state::{Snapshot, StateNode};

/// How long kube-scheduler may take to look at a pod again that it could not place: its longest back-off, and the look
/// itself.
const SCHEDULER_BACKOFF: SignedDuration = SignedDuration::from_secs(12);

/// How long it may take to get to the pods of a node that opened, among a crowd of others.
const SCHEDULER_LATE: SignedDuration = SignedDuration::from_secs(60);

/// The same when it is behind, as it is with a thousand pods for a minute and a half where all of a cluster shares two
/// cores.
const SCHEDULER_LATE_IF_BEHIND: SignedDuration = SignedDuration::from_mins(3);

/// With so many pods left whose node is open, it is behind: it places 25 to 100 a second.
const BACKLOG: usize = 100;

/// Whether kube-scheduler gets to all pods that have a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchedulerPace {
    Keeps,
    /// It has yet to get to many whose node is open, and binds others meanwhile.
    Behind,
}

impl SchedulerPace {
    /// How long after a node opened the scheduler may get to the pods that were placed on it.
    pub(crate) const fn late(self) -> SignedDuration {
        match self {
            Self::Keeps => SCHEDULER_LATE,
            Self::Behind => SCHEDULER_LATE_IF_BEHIND,
        }
    }
}

/// Pods by the node that they were placed on, in order of their keys.
#[derive(Debug, Default)]
pub(crate) struct PlacedPods<'a> {
    by_place: BTreeMap<&'a NodeRef, Vec<&'a Arc<Pod>>>,
}

impl<'a> PlacedPods<'a> {
    /// All pods that were placed and still wait.
    pub(crate) fn of(snapshot: &'a Snapshot) -> Self {
        let mut placed = Self::default();
        for (pod, place) in waiting_and_placed(snapshot) {
            placed.by_place.entry(place).or_default().push(pod);
        }
        placed
    }

    /// Those of a node; `None` when it has none.
    pub(crate) fn take(&mut self, node: &StateNode) -> Option<Vec<&'a Arc<Pod>>> {
        let here = node.node_refs();
        let pods = here.filter_map(|it| self.by_place.remove(&it)).flatten();
        let pods: Vec<_> = pods.collect();
        (!pods.is_empty()).then_some(pods)
    }
}

/// Pods that were placed and still wait, with their place, in order of their keys.
fn waiting_and_placed(snapshot: &Snapshot) -> impl Iterator<Item = (&Arc<Pod>, &NodeRef)> {
    let placed = snapshot.places();
    let with_pod = placed.filter_map(|(key, place)| Some((snapshot.pod(key)?, place)));
    with_pod.filter(|(pod, _)| pod.is_provisionable())
}

fn claim_is_initialized(node: &StateNode) -> bool {
    node.claim()
        .is_some_and(|it| it.conditions.initialized_at.is_some())
}

/// The node that a pod was placed on and that is still being made for it.
pub(crate) fn place_in_the_making<'a>(
    snapshot: &'a Snapshot,
    pod: &PodKey,
) -> Option<&'a Arc<StateNode>> {
    let node = snapshot.place(pod)?;
    (!node.is_initialized() && !node.is_marked_for_deletion()).then_some(node)
}

/// The node that a pod was placed on and that opened so lately, or was given a pod so lately, that the scheduler
/// may still be about to bind it. One that is behind gives others a pod first.
pub(crate) fn place_just_opened<'a>(
    snapshot: &'a Snapshot,
    pod: &PodKey,
    pace: SchedulerPace,
    now: Timestamp,
) -> Option<&'a Arc<StateNode>> {
    let node = snapshot.place(pod)?;
    let claim = node.claim()?;
    let conditions = &claim.conditions;
    // The label that opens a node is written first, and a pass may come before the condition that says since when.
    let opened_at = conditions.initialized_at.or(conditions.registered_at)?;
    let last_pod_at = match (conditions.initialized_at, pace) {
        (None, _) | (_, SchedulerPace::Behind) => now,
        (Some(at), SchedulerPace::Keeps) => claim.last_pod_event_at.unwrap_or(at).max(at),
    };
    let is_fresh = now.duration_since(opened_at) < pace.late()
        && now.duration_since(last_pod_at) < SCHEDULER_BACKOFF;
    let is_open = node.is_initialized() || claim_is_initialized(node);
    (is_open && is_fresh && !node.is_marked_for_deletion()).then_some(node)
}

/// Whether the scheduler gets to these pods. Those whose node is open and has room for them count: it is late to none
/// whose room others took.
pub(crate) fn scheduler_pace(
    snapshot: &Snapshot,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> SchedulerPace {
    let binds = snapshot
        .last_placed_bound_at()
        .is_some_and(|at| now.duration_since(at) < SCHEDULER_BACKOFF);
    let mut free = BTreeMap::new();
    let mut has_room = |pod: &&Arc<Pod>| {
        let Some(node) = snapshot
            .place(&pod.key)
            .filter(|it| claim_is_initialized(it))
        else {
            return false;
        };
        let free = free
            .entry(node.node_ref())
            .or_insert_with(|| snapshot.available(node));
        free.take(&pod.shape.requests)
    };
    if binds && pods.iter().filter(|it| has_room(it)).take(BACKLOG).count() == BACKLOG {
        SchedulerPace::Behind
    } else {
        SchedulerPace::Keeps
    }
}

/// Which pods that wait keep the place that they were given.
///
/// Those whose node is in the making do: placing them again on nodes that were chosen for an exact fit could only end
/// in more nodes. So do those whose node has just opened, since the scheduler looks at pods that wait only every few
/// seconds, and those whose node has come and that wait for others of their kind, as spread over zones makes them wait
/// for nodes in the other zones.
pub(crate) struct KeptPlaces<'a> {
    snapshot: &'a Snapshot,
    /// Shapes of pods that look at others and whose node is in the making.
    unfinished: BTreeSet<&'a PodShape>,
    pace: SchedulerPace,
    now: Timestamp,
}

impl<'a> KeptPlaces<'a> {
    /// `pods` are all that wait and were placed; others do no harm.
    pub(crate) fn of(snapshot: &'a Snapshot, pods: &'a [Arc<Pod>], now: Timestamp) -> Self {
        let looking = pods.iter().filter(|it| it.shape.looks_at_other_pods());
        let unfinished = looking.filter(|it| place_in_the_making(snapshot, &it.key).is_some());
        Self {
            snapshot,
            unfinished: unfinished.map(|it| &*it.shape).collect(),
            pace: scheduler_pace(snapshot, pods, now),
            now,
        }
    }

    pub(crate) fn pace(&self) -> SchedulerPace {
        self.pace
    }

    /// The node that the pod keeps its place on, if it does.
    pub(crate) fn of_pod(&self, pod: &Pod) -> Option<&'a Arc<StateNode>> {
        let snapshot = self.snapshot;
        place_in_the_making(snapshot, &pod.key)
            .or_else(|| place_just_opened(snapshot, &pod.key, self.pace, self.now))
            .or_else(|| {
                let place = snapshot.place(&pod.key)?;
                let awaits_others =
                    !place.is_marked_for_deletion() && self.unfinished.contains(&*pod.shape);
                awaits_others.then_some(place)
            })
    }
}

/// Nodes to which the scheduler may still be about to bind pods that were placed there.
pub fn nodes_awaiting_pods(snapshot: &Snapshot, now: Timestamp) -> BTreeSet<NodeRef> {
    let waiting = waiting_and_placed(snapshot);
    let waiting: Vec<Arc<Pod>> = waiting.map(|(pod, _)| Arc::clone(pod)).collect();
    let places = KeptPlaces::of(snapshot, &waiting, now);
    let kept = waiting.iter().filter_map(|pod| places.of_pod(pod));
    kept.map(|node| node.node_ref()).collect()
}

/// Pods that were placed on the node, or on its claim before, and still wait.
pub(crate) fn placed_on<'a>(snapshot: &'a Snapshot, node: &StateNode) -> Vec<&'a Arc<Pod>> {
    let here: Vec<NodeRef> = node.node_refs().collect();
    let keys = here.iter().flat_map(|it| snapshot.placed_at(it));
    let pods = keys.filter_map(|key| snapshot.pod(key));
    let mut pods: Vec<_> = pods.filter(|pod| pod.is_provisionable()).collect();
    pods.sort_by(|a, b| a.key.cmp(&b.key));
    pods
}
