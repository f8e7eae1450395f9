//! Which nodes hold the room of CapacityBuffers, for those who disrupt nodes.

use std::collections::BTreeSet;
use std::sync::Mutex;

use crate::shell::sync::lock;

/// Nodes that hold the room of buffers, as of the latest pass.
#[derive(Debug, Default)]
pub(crate) struct BufferNodes(Mutex<BTreeSet<String>>);

impl BufferNodes {
    pub(crate) fn get(&self) -> BTreeSet<String> {
        let nodes = lock(&self.0);
        nodes.clone()
    }

    pub(crate) fn set(&self, nodes: BTreeSet<String>) {
        *lock(&self.0) = nodes;
    }
}
