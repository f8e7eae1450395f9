//! Which pods the scheduler is told a place for, now that the node planned for them is about to take pods.
//!
//! Told earlier, nominations hold room on nodes that nobody may use yet and lead the scheduler astray; told just before the
//! node opens they are tried first, and pods of no higher priority leave them their room (KEP-1923, KEP-5278).
//! Decides; the shells write.

use std::sync::Arc;

use scheduling::pod::{Pod, PodShape};

use crate::snapshot::Snapshot;
use crate::state_node::StateNode;

/// Pods to nominate to the node: those placed on it that still wait, unless it does not matter where they go.
///
/// Where all pods that wait are alike, any of them may take any of the places. Pods of other schedulers are left alone, as
/// are those that the scheduler nominates itself.
pub fn nominations<'a>(snapshot: &'a Snapshot, node: &StateNode) -> Vec<&'a Arc<Pod>> {
    let Some(name) = node.node_name() else {
        return Vec::new();
    };
    let placed = snapshot.placed_on(node);
    let Some(first) = placed.first() else {
        return Vec::new();
    };
    let is_like_the_first = |shape: &Arc<PodShape>| Arc::ptr_eq(shape, &first.shape);
    let mut waiting = snapshot.pods().filter(|pod| pod.is_provisionable());
    if waiting.all(|pod| is_like_the_first(&pod.shape)) {
        return Vec::new();
    }
    let is_told = |pod: &Pod| pod.nomination.as_ref().is_some_and(|it| it.node == name);
    let to_tell = placed.into_iter();
    to_tell
        .filter(|pod| !pod.has_own_scheduler && !is_told(pod))
        .collect()
}
