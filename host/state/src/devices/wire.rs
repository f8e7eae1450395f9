//! The wire form of what is read of `resource.k8s.io`, the same for all versions that are understood.

mod capacity;
mod claim;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::NodeSelector;
use scheduling::device::Attribute;
use serde::Deserialize;

use capacity::Amount;

pub(super) use capacity::Capacity;
pub(super) use claim::{
    AllocatedDevice, Claim, ClaimSpec, ClaimStatus, ClassSpec, ExactRequest, WireConstraint,
    WireRequest,
};

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct SliceSpec {
    pub(in crate::devices) driver: String,
    pub(in crate::devices) pool: SlicePool,
    #[serde(default)]
    pub(in crate::devices) node_name: Option<String>,
    #[serde(default)]
    pub(in crate::devices) node_selector: Option<NodeSelector>,
    #[serde(default)]
    pub(in crate::devices) all_nodes: Option<bool>,
    #[serde(default)]
    pub(in crate::devices) devices: Vec<SliceDevice>,
    #[serde(default)]
    pub(in crate::devices) shared_counters: Vec<CounterSet>,
    /// Of the object's owners.
    #[serde(skip)]
    pub(in crate::devices) owner_node: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct SlicePool {
    pub(in crate::devices) name: String,
    #[serde(default)]
    pub(in crate::devices) generation: i64,
    #[serde(default = "one")]
    pub(in crate::devices) resource_slice_count: i64,
}

fn one() -> i64 {
    1
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::devices) struct SliceDevice {
    pub(in crate::devices) name: String,
    /// Where v1beta1 has the rest.
    #[serde(default)]
    basic: Option<DeviceBody>,
    #[serde(flatten)]
    body: DeviceBody,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct DeviceBody {
    #[serde(default)]
    pub(in crate::devices) attributes: BTreeMap<String, AttributeValue>,
    #[serde(default)]
    pub(in crate::devices) capacity: BTreeMap<String, Capacity>,
    #[serde(default)]
    allow_multiple_allocations: bool,
    #[serde(default)]
    pub(in crate::devices) consumes_counters: Vec<CounterSetUse>,
    #[serde(default)]
    pub(in crate::devices) node_name: Option<String>,
    #[serde(default)]
    pub(in crate::devices) node_selector: Option<NodeSelector>,
    #[serde(default)]
    pub(in crate::devices) all_nodes: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::devices) struct AttributeValue {
    #[serde(default)]
    pub(in crate::devices) int: Option<i64>,
    #[serde(default)]
    pub(in crate::devices) bool: Option<bool>,
    #[serde(default)]
    pub(in crate::devices) string: Option<String>,
    #[serde(default)]
    pub(in crate::devices) version: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::devices) struct CounterSet {
    pub(in crate::devices) name: String,
    #[serde(default)]
    pub(in crate::devices) counters: BTreeMap<String, Amount>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct CounterSetUse {
    pub(in crate::devices) counter_set: String,
    #[serde(default)]
    pub(in crate::devices) counters: BTreeMap<String, Amount>,
}

impl SliceSpec {
    pub(in crate::devices) fn pool_key(&self) -> (&str, &str) {
        (&self.driver, &self.pool.name)
    }
}

impl SliceDevice {
    pub(in crate::devices) fn body(&self) -> &DeviceBody {
        self.basic.as_ref().unwrap_or(&self.body)
    }
}

/// Whether the slices of a pool do not contradict each other: no two devices or sets of counters have one name, and
/// devices take from counters that there are.
pub(in crate::devices) fn is_consistent(slices: &[&SliceSpec]) -> bool {
    let mut names = BTreeSet::new();
    let mut sets: BTreeMap<&str, &BTreeMap<String, Amount>> = BTreeMap::new();
    for slice in slices {
        for set in &slice.shared_counters {
            if sets.insert(&set.name, &set.counters).is_some() {
                return false;
            }
        }
        for device in &slice.devices {
            if !names.insert(device.name.as_str()) {
                return false;
            }
        }
    }
    let devices = slices.iter().flat_map(|it| &it.devices);
    let mut uses = devices.flat_map(|it| &it.body().consumes_counters);
    uses.all(|it| {
        let set = sets.get(it.counter_set.as_str());
        set.is_some_and(|set| it.counters.keys().all(|name| set.contains_key(name)))
    })
}

impl DeviceBody {
    /// Whether it serves several claims at once.
    pub(in crate::devices) fn is_shared(&self) -> bool {
        self.allow_multiple_allocations
    }

    /// Amounts of the numbered counters that the device takes.
    pub(in crate::devices) fn takes(
        &self,
        numbers: &BTreeMap<(String, String), usize>,
    ) -> Vec<(usize, i64)> {
        let mut takes = Vec::new();
        for set in &self.consumes_counters {
            for (name, amount) in &set.counters {
                if let Some(number) = numbers.get(&(set.counter_set.clone(), name.clone())) {
                    takes.push((*number, amount.millis()));
                }
            }
        }
        takes
    }
}

impl AttributeValue {
    pub(in crate::devices) fn value(&self) -> Option<Attribute> {
        let text = |it: &String| Attribute::Text(it.clone());
        let version = |it: &String| Attribute::Version(it.clone());
        let number = self.int.map(Attribute::Int);
        number
            .or_else(|| self.bool.map(Attribute::Bool))
            .or_else(|| self.string.as_ref().map(text))
            .or_else(|| self.version.as_ref().map(version))
    }
}
