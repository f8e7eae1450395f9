//! Where pods were placed: the node or claim of each, and the pods of each node or claim.
//!
//! Where pods go is decided elsewhere and only kept here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeRef;
use jiff::Timestamp;
use scheduling::pod::PodKey;

use crate::snapshot::Snapshot;
use crate::state_node::StateNode;

/// Places by pod, and pods by place. A place is a node, which may be gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placement {
    by_pod: BTreeMap<PodKey, NodeRef>,
    by_place: BTreeMap<NodeRef, BTreeSet<PodKey>>,
}

impl Placement {
    /// Where the pod was placed.
    pub(crate) fn get(&self, pod: &PodKey) -> Option<&NodeRef> {
        self.by_pod.get(pod)
    }

    pub(crate) fn insert(&mut self, pod: PodKey, place: NodeRef) {
        self.remove(&pod);
        let here = self.by_place.entry(place.clone()).or_default();
        here.insert(pod.clone());
        self.by_pod.insert(pod, place);
    }

    pub(crate) fn remove(&mut self, pod: &PodKey) {
        let Some(place) = self.by_pod.remove(pod) else {
            return;
        };
        if let Some(here) = self.by_place.get_mut(&place) {
            here.remove(pod);
            if here.is_empty() {
                self.by_place.remove(&place);
            }
        }
    }

    /// All, in order of the pods.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PodKey, &NodeRef)> {
        self.by_pod.iter()
    }

    /// Those of this pod and of all that follow it in order.
    pub(crate) fn from(&self, first: PodKey) -> impl Iterator<Item = (&PodKey, &NodeRef)> {
        self.by_pod.range(first..)
    }

    /// The pods of a place, in order.
    pub(crate) fn at(&self, place: &NodeRef) -> impl Iterator<Item = &PodKey> {
        self.by_place.get(place).into_iter().flatten()
    }
}

impl Snapshot {
    /// The node that a pod was last placed on.
    pub fn place(&self, pod: &PodKey) -> Option<&Arc<StateNode>> {
        self.find(self.data.places.get(pod)?)
    }

    /// Pods that were placed, those to come included, with their places, in order of the pods.
    pub fn places(&self) -> impl Iterator<Item = (&PodKey, &NodeRef)> {
        self.data.places.iter()
    }

    /// Those of them with this place, in order.
    pub fn placed_at(&self, place: &NodeRef) -> impl Iterator<Item = &PodKey> {
        self.data.places.at(place)
    }

    /// When a pod that had been placed was last bound, wherever that was.
    pub fn last_placed_bound_at(&self) -> Option<Timestamp> {
        self.data.last_placed_bound_at
    }
}
