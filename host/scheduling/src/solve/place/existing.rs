//! Pods on nodes that exist or are on their way.
//!
//! Checked exactly as Karpenter checks them: taints, volume limits, host ports, resources, requirements without
//! undefined labels, topology. Answers to `scheduling/existingnode.go`.

use std::collections::BTreeMap;

use crate::pod::HostPort;
use crate::solve::input::topology::{HOSTNAME_KEY, Membership, NodePlace, TopologyRule};
use crate::solve::input::vocabulary::{add_times, times_fitting};
use crate::solve::input::volumes::{attach, attaches};
use crate::solve::solver::{Pending, Solver};
use crate::taints;

impl Solver<'_> {
    /// Puts as many of the pods as possible on nodes.
    pub(crate) fn place_on_nodes(&mut self, pending: &mut Pending) {
        if self.nodes.is_empty() {
            return;
        }
        let membership = self.view_of(pending.view).membership.clone();
        let mut suitable: BTreeMap<usize, bool> = BTreeMap::new();
        loop {
            let mut has_moved = false;
            let mut from = 0;
            while let Some(index) = self.nodes.next_open(from, &self.groups[pending.view.group]) {
                from = index + 1;
                if pending.members.is_empty() {
                    return;
                }
                let pods_max = self.node_pods_max(index, pending, &membership);
                if pods_max == 0 {
                    continue;
                }
                let is_suitable = *suitable
                    .entry(index)
                    .or_insert_with(|| self.is_suitable(index, pending));
                if !is_suitable {
                    continue;
                }
                let count = pods_max.min(pending.members.len());
                let members: Vec<usize> = pending.members.drain(..count).collect();
                self.put_on_node(index, pending, &membership, members);
                has_moved = true;
            }
            // Only a moved count can open a node that was closed before, and only for pods with terms of their own.
            if !has_moved || membership.owned.is_empty() {
                return;
            }
        }
    }

    /// Makes the copy of a node, if there is none yet.
    fn copy_node(&mut self, index: usize) {
        if !self.nodes.has_copy(index) {
            let place = self.place_of_node(index);
            self.nodes.add_copy(index, place);
        }
    }

    fn node_pods_max(&mut self, index: usize, pending: &Pending, membership: &Membership) -> usize {
        let group = &self.groups[pending.view.group];
        let mut pods_max = times_fitting(self.nodes.available(index), &group.requests);
        let is_constrained = !membership.owned.is_empty() || !membership.selected.is_empty();
        let is_plain =
            group.host_ports.is_empty() && group.volumes.is_none() && group.claimant.is_none();
        if pods_max == 0 || (is_plain && !is_constrained) {
            return pods_max;
        }
        self.copy_node(index);
        let Some(node) = self.nodes.copy(index) else {
            return 0;
        };
        let group = &self.groups[pending.view.group];
        if !group.host_ports.is_empty() {
            let is_taken = |port: &HostPort| node.ports.iter().any(|p| p.conflicts_with(port));
            pods_max = usize::from(!group.host_ports.iter().any(is_taken));
        }
        if let Some(volumes) = &group.volumes {
            // Pods of a group share their volumes, so the first one attaches them for all.
            let limits = &node.node.volume_limits;
            if !attaches(limits, &node.volumes, &volumes.attachments) {
                return 0;
            }
        }
        if !self.has_devices(index, pending.view.group) {
            return 0;
        }
        if pods_max == 0 || !is_constrained {
            return pods_max;
        }
        pods_max
            .min(self.topology.host_pods_max(membership, &node.place))
            .min(self.domain_pods_max(membership, &node.place, pending))
    }

    /// How many pods may join at once as far as zones and the like go.
    fn domain_pods_max(
        &self,
        membership: &Membership,
        place: &NodePlace,
        pending: &Pending,
    ) -> usize {
        let strict = self.view_of(pending.view).strict;
        let mut pods_max = usize::MAX;
        for owned in &membership.owned {
            let group = self.topology.group(owned.group);
            if group.key == HOSTNAME_KEY {
                continue;
            }
            let Some(domain) = place.domain(group.key) else {
                return 0;
            };
            let allowed = self.allowed_domains(strict, owned.group);
            if !self.topology.admits(owned, domain, &allowed) {
                return 0;
            }
            if group.rule != TopologyRule::Affinity {
                pods_max = 1;
            }
        }
        for id in &membership.selected {
            let key = self.topology.group(*id).key;
            if key == HOSTNAME_KEY {
                continue;
            }
            if let Some(domain) = place.domain(key)
                && self.topology.is_kept_out(*id, domain)
            {
                return 0;
            }
        }
        pods_max
    }

    fn is_suitable(&self, index: usize, pending: &Pending) -> bool {
        let node = self.nodes.node(index);
        let view = self.view_of(pending.view);
        let alternatives = &self.groups[pending.view.group].alternatives;
        taints::untolerated(&node.taints, &view.tolerations).is_none()
            && node.meets_all(self.vocabulary.get(view.set))
            && (alternatives.is_empty()
                || alternatives
                    .iter()
                    .any(|a| node.meets_all(self.vocabulary.get(*a))))
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
        let group = &self.groups[pending.view.group];
        let Some(node) = self.nodes.copy_mut(index) else {
            return;
        };
        add_times(&mut node.available, &group.requests, -count);
        node.ports.extend(group.host_ports.iter().cloned());
        if let Some(volumes) = &group.volumes {
            attach(&mut node.volumes, &volumes.attachments);
        }
        self.topology
            .record_host(membership, &mut node.place, count);
        for pin in node.place.pins() {
            self.topology
                .record_domain(membership, pin, &node.place.uncounted, count);
        }
        self.placed += members.len();
        node.added.extend(members);
        self.take_devices(index, pending.view.group);
    }
}
