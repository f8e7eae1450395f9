//! Pods that found no node, and what happened since that could give them one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api_server::NamespacedName;

use crate::cluster::shape::SchedulingShape;

/// Place of a shape in the scheduler's order: highest priority first, then the one seen first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShapeRank(Reverse<i32>, usize);

impl ShapeRank {
    pub(super) fn of(shape: &SchedulingShape) -> Self {
        Self(Reverse(shape.priority), shape.id)
    }
}

/// News that could make room for pods that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// These nodes changed, or have more room.
    Nodes(BTreeSet<String>),
    /// Something that may matter on any node.
    Everything,
}

impl Default for News {
    fn default() -> Self {
        Self::Nodes(BTreeSet::new())
    }
}

impl News {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nodes(names) => names.is_empty(),
            Self::Everything => false,
        }
    }

    pub(crate) fn add_node(&mut self, name: &str) {
        match self {
            Self::Nodes(names) => {
                names.insert(name.to_owned());
            }
            Self::Everything => {}
        }
    }
}

/// Pods that found no node, by shape.
#[derive(Debug, Default)]
pub(crate) struct UnschedulablePods {
    ranks: BTreeMap<NamespacedName, ShapeRank>,
    shapes: BTreeMap<ShapeRank, (Arc<SchedulingShape>, BTreeSet<NamespacedName>)>,
}

impl UnschedulablePods {
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    pub(crate) fn contains(&self, key: &NamespacedName) -> bool {
        self.ranks.contains_key(key)
    }

    pub(crate) fn remove(&mut self, key: &NamespacedName) {
        let Some(rank) = self.ranks.remove(key) else {
            return;
        };
        if let Some((_, pods)) = self.shapes.get_mut(&rank) {
            pods.remove(key);
            if pods.is_empty() {
                self.shapes.remove(&rank);
            }
        }
    }

    pub(super) fn extend(&mut self, shape: &Arc<SchedulingShape>, pods: Vec<NamespacedName>) {
        if pods.is_empty() {
            return;
        }
        let rank = ShapeRank::of(shape);
        let of_shape = self.shapes.entry(rank);
        let (_, of_shape) = of_shape.or_insert_with(|| (Arc::clone(shape), BTreeSet::new()));
        for key in pods {
            of_shape.insert(key.clone());
            self.ranks.insert(key, rank);
        }
    }

    /// All pods of a shape; they wait no longer.
    pub(super) fn take(&mut self, shape: &SchedulingShape) -> BTreeSet<NamespacedName> {
        let pods = self.shapes.remove(&ShapeRank::of(shape));
        let pods = pods.map(|(_, pods)| pods).unwrap_or_default();
        for key in &pods {
            self.ranks.remove(key);
        }
        pods
    }

    pub(super) fn shapes(&self) -> impl Iterator<Item = (ShapeRank, &Arc<SchedulingShape>)> {
        let shapes = self.shapes.iter();
        shapes.map(|(rank, (shape, _))| (*rank, shape))
    }
}
