//! Pods on nodes that exist or are on their way.
//!
//! Checked exactly as Karpenter checks them: taints, volume limits, host ports, resources, requirements without
//! undefined labels, topology. Answers to `scheduling/existingnode.go`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::topology::{HOSTNAME_KEY, Membership, Place, Rule};
use super::vocabulary::{Amounts, Dimensions, add_times, times_fitting};
use super::{Pending, Solver, daemons};
use crate::pod::{HostPort, Pod, PodShape};
use crate::problem::{DaemonPod, ExistingNode, Problem};
use crate::requirements::{Requirements, is_negative};
use crate::taints;

/// A node as every solve finds it.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) node: Arc<ExistingNode>,
    room: Amounts,
    ports: Vec<HostPort>,
    /// Its running pods by their number in [`Shapes`].
    pods: Arc<[(usize, i64)]>,
}

/// The shapes of running pods, each with a number.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    /// By address; `all` keeps it taken.
    numbers: BTreeMap<usize, usize>,
    pub(super) all: Vec<Arc<PodShape>>,
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
    pub(super) fn count(
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
pub(super) struct Node<'a> {
    pub(super) node: &'a ExistingNode,
    pub(super) room: Amounts,
    pub(super) place: Place,
    /// Pods that run here by the number of their shape.
    pub(super) pods: Arc<[(usize, i64)]>,
    ports: Vec<HostPort>,
    volumes: BTreeMap<String, BTreeSet<String>>,
    pub(super) added: Vec<usize>,
}

/// Nodes in the order in which they are tried: initialized first, then by name.
pub(super) fn ordered(problem: &Problem) -> Vec<&Arc<ExistingNode>> {
    let mut nodes: Vec<&Arc<ExistingNode>> = problem.nodes.iter().collect();
    nodes.sort_by(|a, b| {
        b.is_initialized
            .cmp(&a.is_initialized)
            .then_with(|| a.name.cmp(&b.name))
    });
    nodes
}

/// Whether a node's labels meet requirements; a label the node lacks meets only negative ones.
pub(super) fn meets(node: &ExistingNode, requirements: &Requirements) -> bool {
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
    pub(super) fn new(
        node: &Arc<ExistingNode>,
        daemons: &[DaemonPod],
        dims: &Dimensions,
        shapes: &mut Shapes,
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
            pods: shapes.count(node, |_| false),
            node: Arc::clone(node),
        }
    }
}

/// The nodes of the problem in the order in which they are tried; what is known of them is taken over.
pub(super) fn nodes<'a>(
    problem: &'a Problem,
    standing: &[Standing],
    dims: &Dimensions,
    shapes: &mut Arc<Shapes>,
) -> Vec<Node<'a>> {
    // Whoever runs many solves hands the nodes over in order, and then there is nothing to sort.
    let mut known = standing.iter();
    let mut in_order = Vec::with_capacity(problem.nodes.len());
    for node in &problem.nodes {
        let Some(found) = known.find(|it| Arc::ptr_eq(&it.node, node)) else {
            break;
        };
        in_order.push(Node::new(node, found));
    }
    if in_order.len() == problem.nodes.len() {
        return in_order;
    }
    let mut known: BTreeMap<usize, &Standing> = standing
        .iter()
        .map(|it| (Arc::as_ptr(&it.node).addr(), it))
        .collect();
    ordered(problem)
        .into_iter()
        .map(|node| {
            if let Some(found) = known.remove(&Arc::as_ptr(node).addr()) {
                return Node::new(node, found);
            }
            let shapes = Arc::make_mut(shapes);
            Node::new(node, &Standing::new(node, &problem.daemons, dims, shapes))
        })
        .collect()
}

impl<'a> Node<'a> {
    fn new(node: &'a ExistingNode, standing: &Standing) -> Self {
        Self {
            node,
            room: standing.room.clone(),
            place: Place::default(),
            pods: Arc::clone(&standing.pods),
            ports: standing.ports.clone(),
            volumes: node.volumes.clone(),
            added: Vec::new(),
        }
    }

    fn has_room_for_volumes(&self, wanted: &BTreeMap<String, BTreeSet<String>>) -> bool {
        wanted.iter().all(|(driver, volumes)| {
            let Some(limit) = self.node.volume_limits.get(driver) else {
                return true;
            };
            let there = self.volumes.get(driver);
            let new = volumes
                .iter()
                .filter(|v| there.is_none_or(|t| !t.contains(*v)))
                .count();
            there.map_or(0, BTreeSet::len) + new <= *limit as usize
        })
    }
}

impl Solver<'_> {
    /// Puts as many of the pods as possible on nodes.
    pub(super) fn place_on_nodes(&mut self, pending: &mut Pending) {
        if self.nodes.is_empty() {
            return;
        }
        let membership = self.view_of(pending.group, pending.view).membership.clone();
        let mut suitable: BTreeMap<usize, bool> = BTreeMap::new();
        loop {
            let mut has_moved = false;
            for index in 0..self.nodes.len() {
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

    fn node_room(&self, index: usize, pending: &Pending, membership: &Membership) -> usize {
        let node = &self.nodes[index];
        let group = &self.groups[pending.group];
        if !node.node.is_schedulable || (node.node.is_settling && group.is_candidate) {
            return 0;
        }
        let mut room = times_fitting(&node.room, &group.requests);
        if room == 0 {
            return 0;
        }
        if !group.host_ports.is_empty() {
            let is_taken = |port: &HostPort| node.ports.iter().any(|p| p.conflicts_with(port));
            room = usize::from(!group.host_ports.iter().any(is_taken));
        }
        if let Some(volumes) = &group.volumes {
            let fits = node.has_room_for_volumes(&volumes.attachments);
            room = if fits { room.min(1) } else { 0 };
        }
        if room == 0 || membership.owned.is_empty() && membership.selected.is_empty() {
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
        let node = self.nodes[index].node;
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
        let group = &self.groups[pending.group];
        let node = &mut self.nodes[index];
        add_times(&mut node.room, &group.requests, -count);
        node.ports.extend(group.host_ports.iter().cloned());
        for (driver, volumes) in group.volumes.iter().flat_map(|v| &v.attachments) {
            node.volumes
                .entry(driver.clone())
                .or_default()
                .extend(volumes.iter().cloned());
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
    }
}
