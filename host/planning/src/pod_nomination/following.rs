//! Which of the pods that are told of their nodes come to them, and which trade places before their nodes open, so that
//! more of them do.
//!
//! A pod whose topology spread, or whose company, keeps it off its node loses what it was told, takes room that was
//! meant for somebody else, and leaves its own to others. Until it is tried it holds its room, so it is told, unless
//! that keeps off another that it must spread with, whose turn comes first. Who comes to his node is played with a
//! model of kube-scheduler ([`scheduling::play::follow`]). Decides; the shells write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use scheduling::play;
use scheduling::pod::{Pod, PodKey};
use scheduling::problem::{Options, Problem};
use state::{Snapshot, StateNode};

use super::{NodePods, are_alike, is_crowded, opens_next};
use crate::places::PlacedPods;

/// Who may get another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceTrade {
    /// Pods of nodes that are ready and still closed.
    BeforeOpening,
    Nobody,
}

/// What comes of pods that are told of their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Following {
    /// Pods that get another place, by the node that takes them.
    pub moved: BTreeMap<NodeRef, Vec<PodKey>>,
    /// Pods that would be kept off their node for now, those that moved off the one that they get.
    pub kept_off: BTreeSet<PodKey>,
    /// Those of them that are told later, or they would keep off others that they must spread with.
    pub out_of_turn: BTreeSet<PodKey>,
}

/// Pods that would be kept off their node now even if others traded places with them; `kept_off` has those that are as
/// they were placed. None in a crowd, where nodes wait for all of their plan.
pub fn shut_out(
    snapshot: &Snapshot,
    kept_off: &BTreeSet<PodKey>,
    now: Timestamp,
) -> BTreeSet<PodKey> {
    if kept_off.is_empty() || is_crowded(snapshot) {
        return BTreeSet::new();
    }
    following(snapshot, PlaceTrade::BeforeOpening, now).kept_off
}

/// Finds out which pods that were placed on nodes that are open, or about to, come to them.
pub fn following(snapshot: &Snapshot, trade: PlaceTrade, now: Timestamp) -> Following {
    if are_alike(snapshot) {
        return Following::default();
    }
    let nodes = snapshot.nodes().filter(|it| it.node_name().is_some());
    let nodes: Vec<&Arc<StateNode>> = nodes.collect();
    let mut placed = PlacedPods::of(snapshot);
    let mut pods = Vec::new();
    let mut places = BTreeMap::new();
    let mut trading = BTreeSet::new();
    for (at, node) in nodes.iter().enumerate() {
        let opens_next = opens_next(node);
        if !opens_next && !node.is_registered() {
            continue;
        }
        let here = placed.take(node).unwrap_or_default();
        for pod in NodePods::with_room(snapshot, node, here).all() {
            places.insert(pods.len(), at);
            pods.push(Arc::clone(pod));
        }
        if opens_next && trade == PlaceTrade::BeforeOpening {
            trading.insert(at);
        }
    }
    let looks_at_others =
        |pod: &Arc<Pod>| pod.shape.looks_at_other_pods() || !pod.shape.pod_anti_affinity.is_empty();
    if !pods.iter().any(looks_at_others) {
        return Following::default();
    }
    let existing = nodes.iter().map(|it| snapshot.existing_node(it, now));
    let problem = Problem {
        nodes: existing.map(Arc::new).collect(),
        pods,
        daemons: snapshot.daemon_pods(),
        namespaces: snapshot.namespaces().clone(),
        ..Problem::new(Options {
            now,
            ..Options::default()
        })
    };
    let played = play::follow(&problem, &places, &trading);
    let key = |pod: usize| problem.pods[pod].key.clone();
    let mut moved: BTreeMap<NodeRef, Vec<PodKey>> = BTreeMap::new();
    for (pod, node) in played.moved {
        if let Some(claim) = nodes[node].claim_name() {
            let pods = moved.entry(NodeRef::claim(claim)).or_default();
            pods.push(key(pod));
        }
    }
    Following {
        moved,
        kept_off: played.kept_off.into_iter().map(key).collect(),
        out_of_turn: played.out_of_turn.into_iter().map(key).collect(),
    }
}
