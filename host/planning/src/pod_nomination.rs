//! Which pods the scheduler is told a place for, now that the node planned for them is about to take pods.
//!
//! Told earlier, nominations hold room on nodes that nobody may use yet and lead the scheduler astray; told just before
//! the node opens they are tried first, and pods of no higher priority leave them their room (KEP-1923, KEP-5278). For
//! three minutes after a node opened its pods are told again where the scheduler forgot and there still is room, and
//! of equal ones the next. Decides; the shells write, and ask a cluster that refuses once.

use std::collections::BTreeSet;
use std::sync::Arc;

use apis::labels;
use jiff::{SignedDuration, Timestamp};
use scheduling::pod::{LabelSelector, Pod};
use scheduling::taints::untolerated;
use state::{Snapshot, StateNode};

use crate::places::{PlacedPods, SchedulerPace, placed_on};

mod opening;
mod trade;

#[cfg(test)]
mod tests;

pub use opening::{ClosedNode, HoldReason, NodeOpening, OpeningTerms, next_look};
pub use trade::trades;

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

/// Pods to nominate again.
pub fn nominations_again(snapshot: &Snapshot, now: Timestamp) -> Renomination<'_> {
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
        let pods = fitting(snapshot, node, name, placed);
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

/// Whether pods of nodes that are still on their way could take the room of pods that are told of this node one at a
/// time: those whose turn has not come hold none.
fn awaits_rivals(snapshot: &Snapshot, claim: &str) -> bool {
    let Some(node) = snapshot.node_of_claim(claim) else {
        return false;
    };
    let room = node.allocatable();
    let fits = |pod: &Pod| pod.shape.requests.fits(&room) && may_run(pod, node);
    are_rivals(&placed_on(snapshot, node))
        && coming_with(snapshot, claim).any(|other| {
            let others = placed_on(snapshot, other);
            others.iter().any(|pod| fits(pod))
        })
}

/// Whether two of them would shut each other out on one node.
fn are_rivals(pods: &[&Arc<Pod>]) -> bool {
    let mut seen = BTreeSet::new();
    let mut groups = pods.iter().filter_map(|it| spread_group(it));
    groups.any(|group| !seen.insert(group))
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
/// as are those that the scheduler nominates itself. Of pods that must spread over zones with each other one is told at
/// a time: kube-scheduler tries a pod with all others that are nominated to the node as if they ran there, so they
/// would shut each other out.
pub fn nominations<'a>(snapshot: &'a Snapshot, node: &StateNode) -> Vec<&'a Arc<Pod>> {
    let Some(name) = node.node_name() else {
        return Vec::new();
    };
    let placed = placed_on(snapshot, node);
    if placed.is_empty() || are_alike(snapshot) {
        return Vec::new();
    }
    fitting(snapshot, node, name, placed)
}

/// Those of the pods placed on the node that are to be told of its name.
fn fitting<'a>(
    snapshot: &'a Snapshot,
    node: &StateNode,
    name: &str,
    placed: Vec<&'a Arc<Pod>>,
) -> Vec<&'a Arc<Pod>> {
    let is_nominated = |pod: &Pod| pod.nomination.as_ref().is_some_and(|it| it.node == name);
    let (nominated, mut waiting): (Vec<_>, Vec<_>) =
        placed.into_iter().partition(|it| is_nominated(it));
    waiting.retain(|pod| !pod.has_own_scheduler);
    waiting.sort_by_key(|pod| pod.queue_key());
    let mut free = snapshot.available(node);
    let mut spread = BTreeSet::new();
    let mut takes = |pod: &'a Pod| {
        let is_turn = spread_group(pod).is_none_or(|group| spread.insert(group));
        is_turn && free.take(&pod.shape.requests)
    };
    for pod in nominated {
        takes(pod);
    }
    waiting.retain(|pod| takes(pod));
    waiting
}

/// Pods that must spread over domains larger than a node, together: those of one selector, whatever else they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SpreadGroup<'a> {
    namespace: &'a str,
    topology_key: &'a str,
    selector: Option<&'a LabelSelector>,
}

/// The group of a pod to which it matters what others there are in a domain larger than a node.
fn spread_group(pod: &Pod) -> Option<SpreadGroup<'_>> {
    let mut required = pod.shape.topology_spread.iter().filter(|it| it.is_required);
    let widely = required.find(|it| it.topology_key != labels::HOSTNAME)?;
    Some(SpreadGroup {
        namespace: &pod.shape.namespace,
        topology_key: &widely.topology_key,
        selector: widely.selector.as_ref(),
    })
}
