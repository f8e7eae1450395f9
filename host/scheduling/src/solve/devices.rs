//! Pods that claim devices: to nodes that have them, and to new nodes only where the devices can be used from anywhere.
//!
//! The search is [`crate::device`]'s. What devices a node will have that does not exist yet, nobody tells.

use super::{Pending, Solver};
use crate::device::Site;

impl Solver<'_> {
    /// Whether a node has the devices that the group's pod claims; nothing is claimed by most.
    pub(super) fn has_devices(&self, index: usize, group: usize) -> bool {
        let Some(claimant) = &self.groups[group].claimant else {
            return true;
        };
        let site = Site::Node(self.nodes.node(index));
        let devices = self.devices.as_ref();
        devices.is_some_and(|it| it.find(claimant, site).is_some())
    }

    /// Gives the group's pod the devices that it claims, on a node that has them.
    pub(super) fn take_devices(&mut self, index: usize, group: usize) {
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
    pub(super) fn hold_for_devices(&mut self, wave: &mut Vec<Pending>) -> Vec<Pending> {
        let Some(devices) = &mut self.devices else {
            return Vec::new();
        };
        let groups = &self.groups;
        let is_held = |pending: &mut Pending| {
            let Some(claimant) = &groups[pending.group].claimant else {
                return false;
            };
            match devices.find(claimant, Site::New) {
                Some(found) => {
                    devices.take(found);
                    false
                }
                None => true,
            }
        };
        wave.extract_if(.., is_held).collect()
    }

    /// What keeps the group's pod from the devices that it claims, if anything does on every new node.
    pub(super) fn lack_of_devices(&self, group: usize) -> Option<String> {
        let claimant = self.groups[group].claimant.as_ref()?;
        let devices = self.devices.as_ref()?;
        let is_lacking = devices.find(claimant, Site::New).is_none();
        is_lacking.then(|| devices.lack(claimant))
    }
}
