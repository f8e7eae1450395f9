//! Pods that keep the places they were given on nodes that are coming or have just come.
//!
//! Which places are kept, and for how long, is for `places.rs` to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use scheduling::pod::Pod;
use scheduling::problem::Problem;
use state::{Snapshot, StateNode};

use super::pending::validate;
use crate::coming::ComingPod;
use crate::places::{KeptPlaces, SchedulerPace};

/// Keeps pods where they were placed, as [`KeptPlaces`] has it, and returns the others. Where others took the room on
/// an open node there is no place left to keep, unless the scheduler is behind and may yet bind those that wait
/// elsewhere.
pub(super) fn keep_places(
    problem: &mut Problem,
    snapshot: &Snapshot,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let places = KeptPlaces::of(snapshot, pods, now);
    let mut waiting = BTreeMap::<NodeRef, (&StateNode, Vec<Arc<Pod>>)>::new();
    let mut others = Vec::new();
    for pod in pods {
        match places.of_pod(pod) {
            Some(node) => {
                let here = waiting.entry(node.node_ref());
                let (_, here) = here.or_insert_with(|| (node, Vec::new()));
                here.push(Arc::clone(pod));
            }
            None => others.push(Arc::clone(pod)),
        }
    }
    if places.pace() == SchedulerPace::Keeps {
        for (node, pods) in waiting.values_mut().filter(|(it, _)| it.is_initialized()) {
            others.extend(take_those_without_room(snapshot, node, pods));
        }
    }
    let waiting = waiting.into_iter();
    put_on_nodes(
        problem,
        snapshot,
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
    let takes = |pod: &Arc<Pod>| free.take(&pod.shape.requests);
    let (with_room, without): (Vec<_>, Vec<_>) = pods.drain(..).partition(takes);
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
    put_on_nodes(problem, snapshot, waiting);
    others
}

fn put_on_nodes(
    problem: &mut Problem,
    snapshot: &Snapshot,
    mut pods: BTreeMap<NodeRef, Vec<Arc<Pod>>>,
) {
    for node in &mut problem.nodes {
        let Some(pods) = pods.remove(&node.node_ref) else {
            continue;
        };
        let node = Arc::make_mut(node);
        for (driver, volumes) in snapshot.volumes().attached(pods.iter()) {
            node.volumes.entry(driver).or_default().extend(volumes);
        }
        for pod in pods {
            node.requests.add_assign(&pod.shape.requests);
            node.pods.push(pod);
        }
    }
}
