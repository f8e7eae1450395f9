//! Which pods the scheduler is told a place for, now that the node planned for them is about to take pods.
//!
//! Told earlier, nominations hold room on nodes that nobody may use yet and lead the scheduler astray; told just before
//! the node opens they are tried first, and pods of no higher priority leave them their room (KEP-1923, KEP-5278). For
//! three minutes after a node opened its pods are told again where the scheduler forgot and there still is room, and
//! of equal ones the next. Decides; the shells write, and ask a cluster that refuses once.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{Pod, PodKey};
use scheduling::taints::untolerated;
use state::{Snapshot, StateNode};

use crate::places::{PlacedPods, SchedulerPace, placed_on};

mod following;
mod opening;

#[cfg(test)]
mod tests;

pub use following::{Following, PlaceTrade, following, shut_out};
pub use opening::{ClosedNode, HoldReason, NodeOpening, OpeningContext, OpeningTerms, next_look};

/// Claims made within this time of each other are taken to be of one plan: an API server may take its time to take
/// them.
const ONE_PLAN: SignedDuration = SignedDuration::from_secs(10);
/// Of so many pods that wait, kube-scheduler tries the last seconds after the first: it writes what it says of each
/// that finds no place, and looks for pods to preempt.
const CROWD: usize = 200;
/// How long after a node opened its pods are told of it again: the scheduler takes the nomination off a pod that it
/// tried in vain.
const RENOMINATED_FOR: SignedDuration = SchedulerPace::Behind.late();

/// Pods to nominate to one node.
#[derive(Debug)]
pub struct NodeNominations<'a> {
    /// Name of the Node.
    pub node: &'a str,
    /// In the order in which they are told.
    pub pods: Vec<&'a Arc<Pod>>,
}

/// What is told again of nodes that opened so lately that pods which were placed on them may still follow.
#[derive(Debug)]
pub enum Renomination<'a> {
    /// There is no such node, so nobody need look again.
    NothingAwaited,
    /// Node by node, as [`nominations`] has them: none where it does not matter where pods go.
    Awaited(Vec<NodeNominations<'a>>),
}

/// Pods to nominate again, but those that the scheduler would keep off their node for now: it tries them as soon as
/// anything changes, and takes the nomination off again.
pub fn nominations_again<'a>(
    snapshot: &'a Snapshot,
    kept_off: &BTreeSet<PodKey>,
    now: Timestamp,
) -> Renomination<'a> {
    let mut fresh = snapshot
        .nodes()
        .filter(|it| opened_lately(it, now))
        .peekable();
    if fresh.peek().is_none() {
        return Renomination::NothingAwaited;
    }
    let mut placed = PlacedPods::of(snapshot);
    let mut awaited = fresh
        .filter_map(|node| Some((node, placed.take(node)?)))
        .peekable();
    if awaited.peek().is_none() {
        return Renomination::NothingAwaited;
    }
    if are_alike(snapshot) {
        return Renomination::Awaited(Vec::new());
    }
    let told = awaited.filter_map(|(node, placed)| {
        let name = node.node_name()?;
        let pods = NodePods::with_room(snapshot, node, placed).untold_but(kept_off);
        Some(NodeNominations { node: name, pods })
    });
    Renomination::Awaited(told.collect())
}

fn opened_lately(node: &StateNode, now: Timestamp) -> bool {
    let conditions = node.claim().map(|it| &it.conditions);
    let opened_at = conditions.and_then(|it| it.registered_at);
    opened_at.is_some_and(|it| now.duration_since(it) < RENOMINATED_FOR)
        && !node.is_marked_for_deletion()
}

/// Nodes that were planned together with that of a claim and are still on their way.
fn coming_with<'a>(
    snapshot: &'a Snapshot,
    claim: &str,
) -> impl Iterator<Item = &'a Arc<StateNode>> {
    let created_at = |node: &StateNode| node.claim()?.created_at;
    let own = snapshot.node_of_claim(claim).and_then(|it| created_at(it));
    let is_of_plan = move |at| own.is_some_and(|own| own.duration_since(at).abs() <= ONE_PLAN);
    snapshot.nodes().filter(move |node| {
        !node.is_ready()
            && !node.is_marked_for_deletion()
            && node.claim_name() != Some(claim)
            && created_at(node).is_some_and(is_of_plan)
    })
}

/// Whether other nodes that were planned together with this one are still on their way, and it matters. The
/// scheduler, told nothing, fills the first node to open with whatever fits, and those for whom it was bought need
/// others; with all of them open it spreads pods over them as widely as the plan did.
fn awaits_others(snapshot: &Snapshot, claim: &str) -> bool {
    coming_with(snapshot, claim).next().is_some() && !are_alike(snapshot)
}

/// Whether pods of nodes that are still on their way could take the room of pods that are shut out of this node: those
/// lose what they were told, so they hold none.
fn awaits_rivals(snapshot: &Snapshot, shut_out: &BTreeSet<PodKey>, claim: &str) -> bool {
    let Some(node) = snapshot.node_of_claim(claim) else {
        return false;
    };
    let room = node.allocatable();
    let fits = |pod: &Pod| pod.shape.requests.fits(&room) && may_run(pod, node);
    let is_shut_out = |pod: &&Arc<Pod>| shut_out.contains(&pod.key);
    placed_on(snapshot, node).iter().any(is_shut_out)
        && coming_with(snapshot, claim).any(|other| {
            let others = placed_on(snapshot, other);
            others.iter().any(|pod| fits(pod))
        })
}

/// Whether nothing that is plain to see, its room aside, keeps the pod off the node.
fn may_run(pod: &Pod, node: &StateNode) -> bool {
    let shape = &pod.shape;
    let mut selected = shape.node_selector.iter();
    selected.all(|(key, value)| node.label(key) == Some(value))
        && untolerated(&node.taints(), &shape.tolerations).is_none()
}

/// Whether a node is ready and still closed.
fn opens_next(node: &StateNode) -> bool {
    node.is_managed() && node.is_ready() && !node.is_registered() && !node.is_marked_for_deletion()
}

/// Whether other nodes are ready and still closed, so that they open with this one: as soon as one is open, all pods
/// that wait are tried, and those of the others lose what they were told.
fn opens_with_others(snapshot: &Snapshot, claim: &str) -> bool {
    let mut nodes = snapshot.nodes();
    nodes.any(|node| opens_next(node) && node.claim_name() != Some(claim))
        && snapshot.pods().any(|pod| pod.is_provisionable())
}

/// Whether so many pods wait that the scheduler is late to those whose place is there.
fn is_crowded(snapshot: &Snapshot) -> bool {
    let waiting = snapshot.pods().filter(|pod| pod.is_provisionable());
    waiting.take(CROWD).count() == CROWD
}

/// Whether any pod that waits may take any of the places.
fn are_alike(snapshot: &Snapshot) -> bool {
    let mut waiting = snapshot.pods().filter(|pod| pod.is_provisionable());
    let first = waiting.next();
    waiting.all(|pod| first.is_some_and(|first| Arc::ptr_eq(&pod.shape, &first.shape)))
}

/// Pods to nominate to the node, in the order in which the scheduler tries them: those placed on it that still wait and
/// have room there, unless it does not matter where they go.
///
/// Where all pods that wait are alike, any of them may take any of the places. Pods of other schedulers are left alone,
/// as are those that the scheduler nominates itself, and those whose turn has not come.
pub fn nominations<'a>(
    snapshot: &'a Snapshot,
    node: &StateNode,
    out_of_turn: &BTreeSet<PodKey>,
) -> Vec<&'a Arc<Pod>> {
    let placed = placed_on(snapshot, node);
    if placed.is_empty() || are_alike(snapshot) {
        return Vec::new();
    }
    NodePods::with_room(snapshot, node, placed).untold_but(out_of_turn)
}

/// Pods placed on a node that still wait and have room there.
#[derive(Debug, Default)]
struct NodePods<'a> {
    /// Those that are nominated to it.
    nominated: Vec<&'a Arc<Pod>>,
    /// The others, in the order in which the scheduler tries them.
    untold: Vec<&'a Arc<Pod>>,
}

impl<'a> NodePods<'a> {
    /// Those of the pods placed on the node that it has room for; none of one that has no name yet.
    fn with_room(snapshot: &Snapshot, node: &StateNode, placed: Vec<&'a Arc<Pod>>) -> Self {
        let Some(name) = node.node_name() else {
            return Self::default();
        };
        let is_nominated = |pod: &Pod| pod.nomination.as_ref().is_some_and(|it| it.node == name);
        let (mut nominated, mut untold): (Vec<_>, Vec<_>) =
            placed.into_iter().partition(|it| is_nominated(it));
        untold.retain(|pod| !pod.has_own_scheduler);
        untold.sort_by_key(|pod| pod.queue_key());
        let mut free = node.allocatable();
        free.sub_assign(snapshot.bound(node).requests());
        let mut takes = |pod: &&Arc<Pod>| free.take(&pod.shape.requests);
        nominated.retain(&mut takes);
        untold.retain(&mut takes);
        Self { nominated, untold }
    }

    fn all(self) -> impl Iterator<Item = &'a Arc<Pod>> {
        self.nominated.into_iter().chain(self.untold)
    }

    fn untold_but(self, others: &BTreeSet<PodKey>) -> Vec<&'a Arc<Pod>> {
        let mut pods = self.untold;
        pods.retain(|it| !others.contains(&it.key));
        pods
    }
}
