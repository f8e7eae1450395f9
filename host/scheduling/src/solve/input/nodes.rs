//! Nodes that exist or are on their way, as a solve finds them and as it changes them.
//!
//! A solve copies only the nodes that it looks at closely. Which pods go there is decided elsewhere. Answers to
//! Karpenter's `scheduling/existingnode.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::daemons;
use super::pod_groups::PodGroup;
use super::topology::NodePlace;
use super::vocabulary::{Amounts, Dimensions, add_times};
use super::volumes::AttachedVolumes;
use crate::pod::{HostPort, Pod, PodShape};
use crate::problem::{DaemonPod, ExistingNode, Problem};

/// A node as every solve finds it: what is available on it, and its running pods.
#[derive(Debug, Clone)]
pub(crate) struct PreparedNode {
    pub(crate) node: Arc<ExistingNode>,
    available: Amounts,
    ports: Vec<HostPort>,
    /// Its running pods by their number in [`Shapes`].
    pub(crate) pods: Arc<[(usize, i64)]>,
    /// Whether pods keep a place on it that are not bound to it yet.
    pub(crate) awaits_pods: bool,
}

/// Nodes that are looked at together: where the most that any of them has available is too little, none is opened.
const BLOCK: usize = 64;

/// The shapes of running pods, each with a number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes {
    /// By address; `all` keeps it taken.
    numbers: BTreeMap<usize, usize>,
    pub(crate) all: Vec<Arc<PodShape>>,
}

impl Shapes {
    fn number(&mut self, shape: &Arc<PodShape>) -> usize {
        let all = &mut self.all;
        *self
            .numbers
            .entry(Arc::as_ptr(shape).addr())
            .or_insert_with(|| {
                all.push(Arc::clone(shape));
                all.len() - 1
            })
    }

    /// Those of a node's pods that count where they run.
    fn count(
        &mut self,
        node: &ExistingNode,
        is_moving: impl Fn(&Pod) -> bool,
    ) -> Arc<[(usize, i64)]> {
        let mut counts: BTreeMap<usize, i64> = BTreeMap::new();
        for pod in &node.pods {
            if pod.is_active() && !is_moving(pod) {
                *counts.entry(self.number(&pod.shape)).or_default() += 1;
            }
        }
        counts.into_iter().collect()
    }
}

/// A copy of a node, to which pods are added.
#[derive(Debug)]
pub(crate) struct NodeCopy<'a> {
    pub(crate) node: &'a ExistingNode,
    pub(crate) available: Amounts,
    pub(crate) place: NodePlace,
    pub(crate) ports: Vec<HostPort>,
    pub(crate) volumes: AttachedVolumes,
    pub(crate) added: Vec<usize>,
}

/// The nodes of a solve: all as they were found, and a copy of each that was looked at closely.
#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    nodes: &'a [PreparedNode],
    /// The most that any node of each block has available.
    block_maxima: &'a [Amounts],
    removed: &'a BTreeSet<usize>,
    copies: BTreeMap<usize, NodeCopy<'a>>,
}

/// Nodes in the order in which they are tried: initialized first, then by name.
pub(super) fn ordered(problem: &Problem) -> Vec<&Arc<ExistingNode>> {
    let mut nodes: Vec<&Arc<ExistingNode>> = problem.nodes.iter().collect();
    nodes.sort_by(|a, b| {
        b.is_initialized
            .cmp(&a.is_initialized)
            .then_with(|| a.node_ref.cmp(&b.node_ref))
    });
    nodes
}

impl PreparedNode {
    pub(crate) fn new(
        node: &Arc<ExistingNode>,
        daemons: &[DaemonPod],
        dims: &Dimensions,
        shapes: &mut Shapes,
        is_moving: impl Fn(&Pod) -> bool,
    ) -> Self {
        let mut available = dims.amounts(&node.allocatable);
        add_times(&mut available, &dims.amounts(&node.requests), -1);
        add_times(
            &mut available,
            &daemons::outstanding(node, daemons, dims),
            -1,
        );
        let ports = node.pods.iter();
        Self {
            awaits_pods: node.pods.iter().any(|it| it.node_name.is_none()),
            available,
            ports: ports
                .flat_map(|p| p.shape.host_ports.iter().cloned())
                .collect(),
            pods: shapes.count(node, is_moving),
            node: Arc::clone(node),
        }
    }
}

/// The most that any node of each block has available.
pub(super) fn block_maxima(nodes: &[PreparedNode], dims: &Dimensions) -> Vec<Amounts> {
    let maxima = |block: &[PreparedNode]| {
        // Less than nothing: a block without an open node takes no pod, not even one that asks for nothing.
        let mut maxima: Amounts = dims.zero().iter().map(|_| -1).collect();
        for it in block.iter().filter(|it| it.node.is_schedulable) {
            for (most, available) in maxima.iter_mut().zip(&it.available) {
                *most = (*most).max(*available);
            }
        }
        maxima
    };
    nodes.chunks(BLOCK).map(maxima).collect()
}

fn fits(available: &[i64], requests: &[i64]) -> bool {
    let mut both = available.iter().zip(requests);
    both.all(|(have, ask)| *have >= 0 && have >= ask)
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(
        nodes: &'a [PreparedNode],
        block_maxima: &'a [Amounts],
        removed: &'a BTreeSet<usize>,
    ) -> Self {
        Self {
            nodes,
            block_maxima,
            removed,
            copies: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() <= self.removed.len()
    }

    /// What a node is, with nothing added to it.
    pub(crate) fn node(&self, index: usize) -> &'a ExistingNode {
        &self.nodes[index].node
    }

    /// The nodes that were looked at closely, in the order in which they are tried.
    pub(crate) fn copies(&self) -> impl Iterator<Item = &NodeCopy<'a>> {
        self.copies.values()
    }

    /// Whether there is a copy of a node.
    pub(crate) fn has_copy(&self, index: usize) -> bool {
        self.copies.contains_key(&index)
    }

    /// Makes the copy of a node that is at a place.
    pub(crate) fn add_copy(&mut self, index: usize, place: NodePlace) {
        let copy = NodeCopy::new(&self.nodes[index], place);
        self.copies.insert(index, copy);
    }

    pub(crate) fn copy(&self, index: usize) -> Option<&NodeCopy<'a>> {
        self.copies.get(&index)
    }

    pub(crate) fn copy_mut(&mut self, index: usize) -> Option<&mut NodeCopy<'a>> {
        self.copies.get_mut(&index)
    }

    /// The next node, from a position on, that may have enough available for one pod of a group.
    pub(crate) fn next_open(&self, from: usize, group: &PodGroup) -> Option<usize> {
        let mut index = from;
        while index < self.nodes.len() {
            let block = index / BLOCK;
            if !fits(&self.block_maxima[block], &group.requests) {
                index = (block + 1) * BLOCK;
                continue;
            }
            let it = &self.nodes[index];
            let is_closed = !it.node.is_schedulable
                || (it.node.is_within_consolidate_after && group.is_candidate);
            if !is_closed && fits(&it.available, &group.requests) && !self.removed.contains(&index)
            {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    pub(crate) fn available(&self, index: usize) -> &Amounts {
        let copy = self.copies.get(&index);
        copy.map_or(&self.nodes[index].available, |it| &it.available)
    }
}

impl<'a> NodeCopy<'a> {
    fn new(prepared: &'a PreparedNode, place: NodePlace) -> Self {
        Self {
            node: &prepared.node,
            available: prepared.available.clone(),
            place,
            ports: prepared.ports.clone(),
            volumes: prepared.node.volumes.clone(),
            added: Vec::new(),
        }
    }
}
