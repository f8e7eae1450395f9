//! Pods on nodes that exist or are on their way.
//!
//! Checked exactly as Karpenter checks them: taints, volume limits, host ports, resources, requirements without
//! undefined labels, topology. A solve copies only the nodes that it looks at closely. Answers to
//! `scheduling/existingnode.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pod::{HostPort, Pod, PodShape};
use crate::problem::{DaemonPod, ExistingNode, Problem};
use crate::requirements::{Requirements, is_negative};
use crate::solve::input::daemons;
use crate::solve::input::topology::{HOSTNAME_KEY, Membership, Place, Rule};
use crate::solve::input::vocabulary::{Amounts, Dimensions, add_times, times_fitting};
use crate::solve::input::volumes::{Volumes, attach, attaches};
use crate::solve::{Pending, PodGroup, Solver};
use crate::taints;

/// A node as every solve finds it.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    pub(crate) node: Arc<ExistingNode>,
    room: Amounts,
    ports: Vec<HostPort>,
    /// Its running pods by their number in [`Shapes`].
    pub(crate) pods: Arc<[(usize, i64)]>,
}

/// Nodes that are looked at together: where the greatest room of them is too small, none is opened.
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
            if !pod.is_terminal() && !pod.is_terminating() && !is_moving(pod) {
                *counts.entry(self.number(&pod.shape)).or_default() += 1;
            }
        }
        counts.into_iter().collect()
    }
}

/// A node while pods are being added to it.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) node: &'a ExistingNode,
    room: Amounts,
    place: Place,
    ports: Vec<HostPort>,
    volumes: Volumes,
    pub(crate) added: Vec<usize>,
}

/// The nodes of a solve: all as they stand, and a copy of each that was looked at closely.
#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    standing: &'a [Standing],
    /// The greatest room of each block.
    bounds: &'a [Amounts],
    gone: &'a BTreeSet<usize>,
    copies: BTreeMap<usize, Node<'a>>,
}

/// Nodes in the order in which they are tried: initialized first, then by name.
pub(crate) fn ordered(problem: &Problem) -> Vec<&Arc<ExistingNode>> {
    let mut nodes: Vec<&Arc<ExistingNode>> = problem.nodes.iter().collect();
    nodes.sort_by(|a, b| {
        b.is_initialized
            .cmp(&a.is_initialized)
            .then_with(|| a.name.cmp(&b.name))
    });
    nodes
}

/// Whether a node's labels meet requirements; a label the node lacks meets only negative ones.
pub(crate) fn meets(node: &ExistingNode, requirements: &Requirements) -> bool {
    requirements.iter().all(|requirement| {
        let value = match node.labels.get(requirement.key()) {
            None if requirement.key() == apis::labels::HOSTNAME => Some(&node.hostname),
            known => known,
        };
        match value {
            Some(value) => requirement.has(value),
            None => is_negative(requirement.operator()),
        }
    })
}

impl Standing {
    pub(crate) fn new(
        node: &Arc<ExistingNode>,
        daemons: &[DaemonPod],
        dims: &Dimensions,
        (shapes, is_moving): (&mut Shapes, impl Fn(&Pod) -> bool),
    ) -> Self {
        let mut room = dims.amounts(&node.allocatable);
        add_times(&mut room, &dims.amounts(&node.requests), -1);
        add_times(&mut room, &daemons::outstanding(node, daemons, dims), -1);
        let ports = node.pods.iter();
        Self {
            room,
            ports: ports
                .flat_map(|p| p.shape.host_ports.iter().cloned())
                .collect(),
            pods: shapes.count(node, is_moving),
            node: Arc::clone(node),
        }
    }
}

/// The greatest room that any node of each block offers.
pub(crate) fn bounds(standing: &[Standing], dims: &Dimensions) -> Vec<Amounts> {
    let bound = |block: &[Standing]| {
        // Less than nothing: a block without an open node takes no pod, not even one that asks for nothing.
        let mut bound: Amounts = dims.zero().iter().map(|_| -1).collect();
        for it in block.iter().filter(|it| it.node.is_schedulable) {
            for (most, room) in bound.iter_mut().zip(&it.room) {
                *most = (*most).max(*room);
            }
        }
        bound
    };
    standing.chunks(BLOCK).map(bound).collect()
}

fn fits(room: &[i64], requests: &[i64]) -> bool {
    let mut both = room.iter().zip(requests);
    both.all(|(have, ask)| *have >= 0 && have >= ask)
}

impl<'a> Nodes<'a> {
    pub(crate) fn new(
        standing: &'a [Standing],
        bounds: &'a [Amounts],
        gone: &'a BTreeSet<usize>,
    ) -> Self {
        Self {
            standing,
            bounds,
            gone,
            copies: BTreeMap::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.standing.len() <= self.gone.len()
    }

    /// What a node is, with nothing added to it.
    pub(crate) fn node(&self, index: usize) -> &'a ExistingNode {
        &self.standing[index].node
    }

    /// The nodes that were looked at closely, in the order in which they are tried.
    pub(crate) fn touched(&self) -> impl Iterator<Item = &Node<'a>> {
        self.copies.values()
    }

    /// The next node, from a position on, that may have room for one pod of a group.
    fn next_open(&self, from: usize, group: &PodGroup) -> Option<usize> {
        let mut index = from;
        while index < self.standing.len() {
            let block = index / BLOCK;
            if !fits(&self.bounds[block], &group.requests) {
                index = (block + 1) * BLOCK;
                continue;
            }
            let it = &self.standing[index];
            let is_closed = !it.node.is_schedulable || (it.node.is_settling && group.is_candidate);
            if !is_closed && fits(&it.room, &group.requests) && !self.gone.contains(&index) {
                return Some(index);
            }
            index += 1;
        }
        None
    }

    fn room(&self, index: usize) -> &Amounts {
        let copy = self.copies.get(&index);
        copy.map_or(&self.standing[index].room, |it| &it.room)
    }
}

impl<'a> Node<'a> {
    fn new(standing: &'a Standing, place: Place) -> Self {
        Self {
            node: &standing.node,
            room: standing.room.clone(),
            place,
            ports: standing.ports.clone(),
            volumes: standing.node.volumes.clone(),
            added: Vec::new(),
        }
    }
}

impl Solver<'_> {
    /// Puts as many of the pods as possible on nodes.
    pub(crate) fn place_on_nodes(&mut self, pending: &mut Pending) {
        if self.nodes.is_empty() {
            return;
        }
        let membership = self.view_of(pending.group, pending.view).membership.clone();
        let mut suitable: BTreeMap<usize, bool> = BTreeMap::new();
        loop {
            let mut has_moved = false;
            let mut from = 0;
            while let Some(index) = self.nodes.next_open(from, &self.groups[pending.group]) {
                from = index + 1;
                if pending.members.is_empty() {
                    return;
                }
                let room = self.node_room(index, pending, &membership);
                if room == 0 {
                    continue;
                }
                let is_suitable = *suitable
                    .entry(index)
                    .or_insert_with(|| self.is_suitable(index, pending));
                if !is_suitable {
                    continue;
                }
                let count = room.min(pending.members.len());
                let members: Vec<usize> = pending.members.drain(..count).collect();
                self.put_on_node(index, pending, &membership, members);
                has_moved = true;
            }
            // Only a moved count can open a node that was closed before, and only for pods with a stake.
            if !has_moved || membership.owned.is_empty() {
                return;
            }
        }
    }

    /// Makes the copy of a node, if there is none yet.
    fn copy_node(&mut self, index: usize) {
        if !self.nodes.copies.contains_key(&index) {
            let place = self.place_of_node(index);
            let copy = Node::new(&self.nodes.standing[index], place);
            self.nodes.copies.insert(index, copy);
        }
    }

    fn node_room(&mut self, index: usize, pending: &Pending, membership: &Membership) -> usize {
        let group = &self.groups[pending.group];
        let mut room = times_fitting(self.nodes.room(index), &group.requests);
        let has_stake = !membership.owned.is_empty() || !membership.selected.is_empty();
        let is_plain =
            group.host_ports.is_empty() && group.volumes.is_none() && group.claimant.is_none();
        if room == 0 || (is_plain && !has_stake) {
            return room;
        }
        self.copy_node(index);
        let Some(node) = self.nodes.copies.get(&index) else {
            return 0;
        };
        let group = &self.groups[pending.group];
        if !group.host_ports.is_empty() {
            let is_taken = |port: &HostPort| node.ports.iter().any(|p| p.conflicts_with(port));
            room = usize::from(!group.host_ports.iter().any(is_taken));
        }
        if let Some(volumes) = &group.volumes {
            // Pods of a group share their volumes, so the first one attaches them for all.
            let limits = &node.node.volume_limits;
            if !attaches(limits, &node.volumes, &volumes.attachments) {
                return 0;
            }
        }
        if !self.has_devices(index, pending.group) {
            return 0;
        }
        if room == 0 || !has_stake {
            return room;
        }
        room.min(self.topology.host_room(membership, &node.place))
            .min(self.domain_room(membership, &node.place, pending))
    }

    /// How many pods may join at once as far as zones and the like go.
    fn domain_room(&self, membership: &Membership, place: &Place, pending: &Pending) -> usize {
        let strict = self.view_of(pending.group, pending.view).strict;
        let mut room = usize::MAX;
        for owned in &membership.owned {
            let group = self.topology.group(owned.group);
            if group.key == HOSTNAME_KEY {
                continue;
            }
            let Some(domain) = place.domains.get(group.key).copied().flatten() else {
                return 0;
            };
            let allowed = self.allowed_domains(strict, owned.group);
            if !self.topology.admits(owned, domain, &allowed) {
                return 0;
            }
            if group.rule != Rule::Affinity {
                room = 1;
            }
        }
        for id in &membership.selected {
            let key = self.topology.group(*id).key;
            if key == HOSTNAME_KEY {
                continue;
            }
            if let Some(domain) = place.domains.get(key).copied().flatten()
                && self.topology.is_kept_out(*id, domain)
            {
                return 0;
            }
        }
        room
    }

    fn is_suitable(&self, index: usize, pending: &Pending) -> bool {
        let node = self.nodes.node(index);
        let view = self.view_of(pending.group, pending.view);
        let alternatives = &self.groups[pending.group].alternatives;
        taints::untolerated(&node.taints, &view.tolerations).is_none()
            && meets(node, self.vocabulary.get(view.set))
            && (alternatives.is_empty()
                || alternatives
                    .iter()
                    .any(|a| meets(node, self.vocabulary.get(*a))))
    }

    fn put_on_node(
        &mut self,
        index: usize,
        pending: &Pending,
        membership: &Membership,
        members: Vec<usize>,
    ) {
        let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
        self.copy_node(index);
        let group = &self.groups[pending.group];
        let Some(node) = self.nodes.copies.get_mut(&index) else {
            return;
        };
        add_times(&mut node.room, &group.requests, -count);
        node.ports.extend(group.host_ports.iter().cloned());
        if let Some(volumes) = &group.volumes {
            attach(&mut node.volumes, &volumes.attachments);
        }
        self.topology
            .record_host(membership, &mut node.place, count);
        for (key, domain) in node.place.domains.iter().enumerate() {
            if let Some(domain) = domain {
                let at = (key, *domain);
                self.topology
                    .record_domain(membership, at, &node.place.uncounted, count);
            }
        }
        self.placed += members.len();
        node.added.extend(members);
        self.take_devices(index, pending.group);
    }
}
