//! Pods that claim devices: to nodes that have them, and to new nodes that can use devices from elsewhere.
//!
//! The search is [`crate::device`]'s. What devices a node will have that does not exist yet, nobody tells.

use std::cell::RefCell;

use crate::device::{FoundDevices, Site};
use crate::requirements::Requirements;
use crate::solve::input::pod_groups::PodGroupId;
use crate::solve::solver::{Pending, Solver, ViewId};
use crate::taints::untolerated;

impl Solver<'_> {
    /// Whether a node has the devices that the group's pod claims; nothing is claimed by most.
    pub(super) fn has_devices(&self, index: usize, group: PodGroupId) -> bool {
        let Some(claimant) = &self.groups[group].claimant else {
            return true;
        };
        let site = Site::Node(self.nodes.node(index));
        let devices = self.devices.as_ref();
        devices.is_some_and(|it| it.find(claimant, site).is_some())
    }

    /// Gives the group's pod the devices that it claims, on a node that has them.
    pub(super) fn take_devices(&mut self, index: usize, group: PodGroupId) {
        let Some(claimant) = &self.groups[group].claimant else {
            return;
        };
        let site = Site::Node(self.nodes.node(index));
        if let Some(devices) = &mut self.devices
            && let Some(found) = devices.find(claimant, site)
        {
            devices.take(found);
        }
    }

    /// Takes out the pods whose devices no new node could reach; those of the others are given to them.
    pub(crate) fn hold_for_devices(&mut self, queue: &mut Vec<Pending>) -> Vec<Pending> {
        if self.devices.is_none() {
            return Vec::new();
        }
        let all = std::mem::take(queue).into_iter();
        let (held, free) = all.partition(|pending| !self.gives_devices(pending));
        *queue = free;
        held
    }

    /// What keeps the group's pod from the devices that it claims, if anything does on every new node.
    pub(crate) fn lack_of_devices(&mut self, group: PodGroupId) -> Option<String> {
        let claimant = self.groups[group].claimant.clone()?;
        let step = self.groups[group].views.len() - 1;
        let last = ViewId { group, step };
        let is_lacking = self.devices_of_new_node(last).is_none();
        let devices = self.devices.as_ref()?;
        is_lacking.then(|| devices.lack(&claimant))
    }

    /// Gives the pod devices that some new node can use, and holds it to such nodes.
    fn gives_devices(&mut self, pending: &Pending) -> bool {
        if self.groups[pending.view.group].claimant.is_none() {
            return true;
        }
        let Some(found) = self.devices_of_new_node(pending.view) else {
            return false;
        };
        if !found.asked.is_empty() {
            let asked = self.vocabulary.set(found.asked.clone());
            self.groups[pending.view.group].alternatives =
                self.with_alternatives(pending.view.group, asked);
        }
        if let Some(devices) = &mut self.devices {
            devices.take(found);
        }
        true
    }

    fn devices_of_new_node(&mut self, view: ViewId) -> Option<FoundDevices> {
        let claimant = self.groups[view.group].claimant.clone()?;
        let devices = self.devices.take()?;
        let found = {
            let solver = RefCell::new(&mut *self);
            let may_be = |asked: &Requirements| solver.borrow_mut().may_open(view, asked.clone());
            devices.find(&claimant, Site::New(&may_be))
        };
        self.devices = Some(devices);
        found
    }

    /// Whether some pool sells nodes like this to the group's pods, sizes and limits aside.
    fn may_open(&mut self, of_view: ViewId, asked: Requirements) -> bool {
        let asked = self.vocabulary.set(asked);
        let view = self.view_of(of_view).clone();
        let Some(set) = self.vocabulary.merge(view.set, asked) else {
            return false;
        };
        let sets = self.with_alternatives(of_view.group, set);
        let vocabulary = &self.vocabulary;
        self.pools.iter_mut().any(|table| {
            untolerated(&table.taints, &view.tolerations).is_none()
                && sets.iter().any(|set| {
                    table.admits(*set, vocabulary).is_ok()
                        && table.rows_of(*set, vocabulary).first().is_some()
                })
        })
    }
}
