//! How many pods of each shape are on each node, so that rules about other pods need not look at pods.
//!
//! It holds bound pods and those that the scheduler has just bound, but none that is being deleted.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::shape::SchedulingShape;

/// Pods by the number of their shape and by node.
#[derive(Debug, Default)]
pub(crate) struct Census {
    shapes: BTreeMap<usize, (Arc<SchedulingShape>, BTreeMap<String, i64>)>,
}

impl Census {
    pub(crate) fn add(&mut self, shape: &Arc<SchedulingShape>, node: &str) {
        let of_shape = self.shapes.entry(shape.id);
        let (_, nodes) = of_shape.or_insert_with(|| (Arc::clone(shape), BTreeMap::new()));
        if let Some(count) = nodes.get_mut(node) {
            *count += 1;
        } else {
            nodes.insert(node.to_owned(), 1);
        }
    }

    pub(crate) fn remove(&mut self, shape: &SchedulingShape, node: &str) {
        let Some((_, nodes)) = self.shapes.get_mut(&shape.id) else {
            return;
        };
        if let Some(count) = nodes.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                nodes.remove(node);
            }
        }
        if nodes.is_empty() {
            self.shapes.remove(&shape.id);
        }
    }

    /// Shapes with their nodes and counts.
    pub(crate) fn shapes(
        &self,
    ) -> impl Iterator<Item = (&SchedulingShape, &BTreeMap<String, i64>)> {
        let shapes = self.shapes.values();
        shapes.map(|(shape, nodes)| (&**shape, nodes))
    }
}
