//! The devices that can be had at the moment, what selectors see of them, and the counters that they share.
//!
//! Karpenter's `pkg/scheduling/dynamicresources` gathers them the same way. Knows nothing of who asks.

use std::collections::BTreeMap;

use scheduling::device::{Access, Attribute, Device};

use super::DeviceWorld;
use super::{selector, wire};
use crate::node_terms::node_term;
use crate::snapshot::Snapshot;

/// Devices, what selectors see of them, and counters.
#[derive(Debug, Default)]
pub(super) struct Stock {
    pub(super) devices: Vec<Device>,
    pub(super) facts: Vec<selector::DeviceFacts>,
    /// Capacities that claims may have a part of, by device; none of devices that are not shared.
    parts: Vec<Vec<CapacityPart>>,
    pub(super) counters: Vec<i64>,
    spent: usize,
}

/// A capacity of a shared device.
#[derive(Debug)]
struct CapacityPart {
    name: String,
    capacity: wire::Capacity,
    /// Counts what is left of it.
    counter: usize,
}

impl DeviceWorld {
    /// The devices of the newest generation of every pool, those of nodes that are not ready for any left out.
    pub(super) fn stock(
        &self,
        snapshot: &Snapshot,
        is_released: &dyn Fn(&wire::Claim) -> bool,
    ) -> Stock {
        let mut newest: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for slice in self.slices.values() {
            let known = newest.entry(slice.pool_key()).or_insert(i64::MIN);
            *known = (*known).max(slice.pool.generation);
        }
        let mut pools: BTreeMap<(&str, &str), Vec<&wire::SliceSpec>> = BTreeMap::new();
        for slice in self.slices.values() {
            if newest.get(&slice.pool_key()) == Some(&slice.pool.generation) {
                pools.entry(slice.pool_key()).or_default().push(slice);
            }
        }
        let claims = self.claims.values().filter(|claim| !is_released(claim));
        let mut taken: BTreeMap<(&str, &str, &str), Vec<&wire::AllocatedDevice>> = BTreeMap::new();
        for device in claims.flat_map(|claim| claim.taken()) {
            taken.entry(device.key()).or_default().push(device);
        }
        let mut stock = Stock::default();
        for ((driver, pool), slices) in pools {
            let wanted = slices.iter().map(|it| it.pool.resource_slice_count).max();
            let is_complete = wanted == i64::try_from(slices.len()).ok();
            let is_sound = is_complete && wire::is_consistent(&slices);
            let first = stock.counters.len();
            let counters = stock.counters_of(&slices);
            for slice in &slices {
                for device in &slice.devices {
                    let Some(access) = access_of(snapshot, slice, device) else {
                        continue;
                    };
                    let by = taken.get(&(driver, pool, device.name.as_str()));
                    let body = device.body();
                    let parts = stock.parts_of(body, by.map_or(&[], Vec::as_slice));
                    stock.devices.push(Device {
                        driver: driver.to_owned(),
                        pool: pool.to_owned(),
                        name: device.name.clone(),
                        access,
                        attributes: attributes_of(driver, device),
                        takes: body.takes(&counters),
                        is_of_sound_pool: is_sound,
                        is_shared: body.is_shared(),
                        is_taken: by.is_some(),
                    });
                    stock.parts.push(parts);
                    stock.facts.push(selector::DeviceFacts::of(driver, body));
                }
            }
            stock.spend(first);
        }
        stock
    }
}

impl Stock {
    /// Numbers the counters of a pool, by set and name.
    fn counters_of(&mut self, slices: &[&wire::SliceSpec]) -> BTreeMap<(String, String), usize> {
        let mut numbers = BTreeMap::new();
        let sets = slices.iter().flat_map(|it| &it.shared_counters);
        for set in sets {
            for (name, counter) in &set.counters {
                numbers.insert((set.name.clone(), name.clone()), self.counters.len());
                self.counters.push(counter.millis());
            }
        }
        numbers
    }

    /// Numbers the capacities of a shared device, less what the claims that use it have.
    fn parts_of(
        &mut self,
        body: &wire::DeviceBody,
        by: &[&wire::AllocatedDevice],
    ) -> Vec<CapacityPart> {
        if !body.is_shared() {
            return Vec::new();
        }
        let mut parts = Vec::new();
        for (name, capacity) in &body.capacity {
            let used = by.iter().map(|it| it.consumed(name));
            let used = used.fold(0_i64, i64::saturating_add);
            self.counters.push(capacity.millis().saturating_sub(used));
            parts.push(CapacityPart {
                name: name.clone(),
                capacity: capacity.clone(),
                counter: self.counters.len() - 1,
            });
        }
        parts
    }

    /// Amounts of counters that a request takes when it is given the device; `None` when it may not be.
    pub(super) fn takes(
        &self,
        device: usize,
        request: &wire::ExactRequest,
    ) -> Option<Vec<(usize, i64)>> {
        // Who watches over devices neither waits for them nor takes them from others.
        if request.admin_access == Some(true) {
            return Some(Vec::new());
        }
        let mut takes = self.devices[device].takes.clone();
        if !self.devices[device].is_shared {
            return Some(takes);
        }
        let parts = &self.parts[device];
        let mut asked = request.capacities();
        if !asked.all(|(name, _)| parts.iter().any(|part| part.name == *name)) {
            return None;
        }
        for part in parts {
            let asked = request.capacities().find(|(name, _)| **name == part.name);
            let amount = part.capacity.part_of(asked.map(|(_, amount)| amount))?;
            takes.push((part.counter, amount));
        }
        Some(takes)
    }

    /// Takes what devices in use have of the counters numbered last.
    fn spend(&mut self, first: usize) {
        for device in self
            .devices
            .iter()
            .skip(self.spent)
            .filter(|it| it.is_taken)
        {
            for (counter, amount) in &device.takes {
                if *counter >= first {
                    self.counters[*counter] = self.counters[*counter].saturating_sub(*amount);
                }
            }
        }
        self.spent = self.devices.len();
    }
}

/// Where a device can be used; `None` while its node is not ready for any, or going.
fn access_of(
    snapshot: &Snapshot,
    slice: &wire::SliceSpec,
    device: &wire::SliceDevice,
) -> Option<Access> {
    let is_ready = |name: &String| {
        let node = snapshot.node(name);
        node.is_some_and(|it| it.is_initialized() && !it.is_marked_for_deletion())
    };
    if !slice.owner_node.iter().all(is_ready) {
        return None;
    }
    let body = device.body();
    let node = slice.node_name.as_ref().or(body.node_name.as_ref());
    if let Some(name) = node {
        return is_ready(name).then(|| Access::Node(name.clone()));
    }
    if slice.all_nodes == Some(true) || body.all_nodes == Some(true) {
        return Some(Access::Everywhere);
    }
    let selector = slice
        .node_selector
        .as_ref()
        .or(body.node_selector.as_ref())?;
    let terms = selector.node_selector_terms.iter().map(node_term);
    Some(Access::Selected(terms.collect()))
}

fn attributes_of(driver: &str, device: &wire::SliceDevice) -> BTreeMap<String, Attribute> {
    let attributes = device.body().attributes.iter();
    let attributes = attributes.filter_map(|(name, value)| {
        let name = if name.contains('/') {
            name.clone()
        } else {
            format!("{driver}/{name}")
        };
        Some((name, value.value()?))
    });
    attributes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_are_drawn_beyond_all_bounds_stay_at_the_least() {
        let device = Device {
            driver: "gpu.example.com".to_owned(),
            pool: "n1".to_owned(),
            name: "gpu-0".to_owned(),
            access: Access::Everywhere,
            attributes: BTreeMap::new(),
            takes: vec![(0, i64::MAX)],
            is_of_sound_pool: true,
            is_shared: false,
            is_taken: true,
        };
        let mut stock = Stock {
            devices: vec![device.clone(), device],
            counters: vec![-2],
            ..Stock::default()
        };
        stock.spend(0);
        assert_eq!(stock.counters, [i64::MIN]);
    }
}
