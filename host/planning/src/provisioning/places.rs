//! Pods that keep the places they were given on nodes that are coming or have just come.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use scheduling::pod::{Pod, PodShape};
use scheduling::problem::Problem;
use state::{Snapshot, StateNode};

use super::pending::validate;
use crate::coming::ComingPod;
use crate::places::{is_scheduler_behind, place_in_the_making, place_just_opened};

/// Pods that wait for a node in the making keep their place on it: placing them again on nodes that were
/// chosen for an exact fit could only end in more nodes. So do those whose node has just opened, since the scheduler
/// looks at pods that wait only every few seconds, and those whose node has come and that wait for others of
/// their kind, as spread over zones makes them wait for nodes in the other zones. Where others took the room on an open
/// node there is no place left to keep, unless the scheduler is behind and may yet bind those that wait elsewhere.
/// Returns the others.
pub(super) fn keep_places(
    problem: &mut Problem,
    snapshot: &Snapshot,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let in_the_making = |pod: &Arc<Pod>| place_in_the_making(snapshot, &pod.key);
    let unfinished: BTreeSet<&PodShape> = pods
        .iter()
        .filter(|pod| pod.shape.looks_at_other_pods() && in_the_making(pod).is_some())
        .map(|pod| &*pod.shape)
        .collect();
    let is_behind = is_scheduler_behind(snapshot, pods, now);
    let just_opened = |pod: &Arc<Pod>| place_just_opened(snapshot, &pod.key, is_behind, now);
    let kept = |pod: &Arc<Pod>| {
        let at_hand = in_the_making(pod).or_else(|| just_opened(pod));
        at_hand.or_else(|| {
            let place = snapshot.place(&pod.key)?;
            let awaits_others = !place.is_marked_for_deletion() && unfinished.contains(&*pod.shape);
            awaits_others.then_some(place)
        })
    };
    let mut waiting = BTreeMap::<NodeRef, (&StateNode, Vec<Arc<Pod>>)>::new();
    let mut others = Vec::new();
    for pod in pods {
        match kept(pod) {
            Some(node) => {
                let here = waiting.entry(node.node_ref());
                let (_, here) = here.or_insert_with(|| (node, Vec::new()));
                here.push(Arc::clone(pod));
            }
            None => others.push(Arc::clone(pod)),
        }
    }
    if !is_behind {
        for (node, pods) in waiting.values_mut().filter(|(it, _)| it.is_initialized()) {
            others.extend(take_those_without_room(snapshot, node, pods));
        }
    }
    let waiting = waiting.into_iter();
    put_on_nodes(
        problem,
        waiting.map(|(node, (_, pods))| (node, pods)).collect(),
    );
    others
}

/// Takes the pods for which an open node has no room left out of those that are kept for it. Who was told of the node
/// is let in first, as the scheduler does it, then who waits longest.
fn take_those_without_room(
    snapshot: &Snapshot,
    node: &StateNode,
    pods: &mut Vec<Arc<Pod>>,
) -> Vec<Arc<Pod>> {
    let is_told = |pod: &Pod| {
        let nomination = pod.nomination.as_ref();
        nomination.is_some_and(|it| Some(it.node.as_str()) == node.node_name())
    };
    pods.sort_by(|a, b| (!is_told(a), a.queue_key()).cmp(&(!is_told(b), b.queue_key())));
    let mut free = snapshot.available(node);
    let mut takes = |pod: &Pod| {
        let fits = pod.shape.requests.fits(&free);
        if fits {
            free.sub_assign(&pod.shape.requests);
        }
        fits
    };
    let (with_room, without): (Vec<_>, Vec<_>) = pods.drain(..).partition(|it| takes(it));
    *pods = with_room;
    without
}

/// Puts pods that are about to be created where they are planned to go. Returns those without a place.
pub(super) fn place_coming(
    problem: &mut Problem,
    snapshot: &Snapshot,
    coming: Vec<ComingPod>,
) -> Vec<Arc<Pod>> {
    let mut waiting = BTreeMap::<NodeRef, Vec<Arc<Pod>>>::new();
    let mut others = Vec::new();
    let valid = |it: &ComingPod| validate(snapshot, &it.pod).is_ok();
    for ComingPod { pod, place } in coming.into_iter().filter(valid) {
        match place.and_then(|place| snapshot.find(&place)) {
            Some(node) => waiting.entry(node.node_ref()).or_default().push(pod),
            None => others.push(pod),
        }
    }
    put_on_nodes(problem, waiting);
    others
}

fn put_on_nodes(problem: &mut Problem, mut pods: BTreeMap<NodeRef, Vec<Arc<Pod>>>) {
    for node in &mut problem.nodes {
        let Some(pods) = pods.remove(&node.node_ref) else {
            continue;
        };
        let node = Arc::make_mut(node);
        for pod in pods {
            node.requests.add_assign(&pod.shape.requests);
            node.pods.push(pod);
        }
    }
}
