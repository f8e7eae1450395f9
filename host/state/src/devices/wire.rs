//! The wire form of what is read of `resource.k8s.io`, the same for all versions that are understood.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::NodeSelector;
use scheduling::device::Attribute;
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SliceSpec {
    pub(super) driver: String,
    pub(super) pool: SlicePool,
    #[serde(default)]
    pub(super) node_name: Option<String>,
    #[serde(default)]
    pub(super) node_selector: Option<NodeSelector>,
    #[serde(default)]
    pub(super) all_nodes: Option<bool>,
    #[serde(default)]
    pub(super) devices: Vec<SliceDevice>,
    #[serde(default)]
    pub(super) shared_counters: Vec<CounterSet>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SlicePool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) generation: i64,
    #[serde(default = "one")]
    pub(super) resource_slice_count: i64,
}

fn one() -> i64 {
    1
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SliceDevice {
    pub(super) name: String,
    /// Where v1beta1 has the rest.
    #[serde(default)]
    basic: Option<DeviceBody>,
    #[serde(flatten)]
    body: DeviceBody,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeviceBody {
    #[serde(default)]
    pub(super) attributes: BTreeMap<String, AttributeValue>,
    #[serde(default)]
    pub(super) capacity: BTreeMap<String, Amount>,
    #[serde(default)]
    pub(super) consumes_counters: Vec<CounterSetUse>,
    #[serde(default)]
    pub(super) node_name: Option<String>,
    #[serde(default)]
    pub(super) node_selector: Option<NodeSelector>,
    #[serde(default)]
    pub(super) all_nodes: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct AttributeValue {
    #[serde(default)]
    pub(super) int: Option<i64>,
    #[serde(default)]
    pub(super) bool: Option<bool>,
    #[serde(default)]
    pub(super) string: Option<String>,
    #[serde(default)]
    pub(super) version: Option<String>,
}

/// A quantity, alone or as the value of an object.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Wrapped { value: String },
    Text(String),
    Number(i64),
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct CounterSet {
    pub(super) name: String,
    #[serde(default)]
    pub(super) counters: BTreeMap<String, Amount>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CounterSetUse {
    pub(super) counter_set: String,
    #[serde(default)]
    pub(super) counters: BTreeMap<String, Amount>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ClassSpec {
    #[serde(default)]
    pub(super) selectors: Vec<Selector>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Selector {
    #[serde(default)]
    pub(super) cel: Option<Cel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Cel {
    pub(super) expression: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Claim {
    pub(super) spec: ClaimSpec,
    #[serde(default)]
    pub(super) status: ClaimStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ClaimSpec {
    #[serde(default)]
    pub(super) devices: ClaimDevices,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ClaimDevices {
    #[serde(default)]
    pub(super) requests: Vec<Request>,
    #[serde(default)]
    pub(super) constraints: Vec<Constraint>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) name: String,
    #[serde(default)]
    pub(super) exactly: Option<ExactRequest>,
    #[serde(default)]
    pub(super) first_available: Vec<ExactRequest>,
    /// Where v1beta1 has it.
    #[serde(flatten)]
    pub(super) inline: ExactRequest,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExactRequest {
    /// Of a sub-request only; a request has its own.
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) device_class_name: Option<String>,
    #[serde(default)]
    pub(super) selectors: Vec<Selector>,
    #[serde(default)]
    pub(super) allocation_mode: Option<String>,
    #[serde(default)]
    pub(super) count: Option<i64>,
    #[serde(default)]
    pub(super) admin_access: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Constraint {
    #[serde(default)]
    pub(super) requests: Vec<String>,
    #[serde(default)]
    pub(super) match_attribute: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClaimStatus {
    #[serde(default)]
    pub(super) allocation: Option<Allocation>,
    #[serde(default)]
    reserved_for: Vec<Consumer>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Allocation {
    #[serde(default)]
    devices: AllocatedDevices,
    #[serde(default)]
    pub(super) node_selector: Option<NodeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct AllocatedDevices {
    #[serde(default)]
    results: Vec<AllocatedDevice>,
}

#[derive(Debug, Clone, Deserialize)]
struct AllocatedDevice {
    driver: String,
    pool: String,
    device: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Consumer {
    #[serde(default)]
    uid: String,
}

impl SliceSpec {
    pub(super) fn pool_key(&self) -> (&str, &str) {
        (&self.driver, &self.pool.name)
    }
}

impl SliceDevice {
    pub(super) fn body(&self) -> &DeviceBody {
        self.basic.as_ref().unwrap_or(&self.body)
    }
}

impl DeviceBody {
    /// What the device takes of the numbered counters.
    pub(super) fn takes(&self, numbers: &BTreeMap<(String, String), usize>) -> Vec<(usize, i64)> {
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
    pub(super) fn value(&self) -> Option<Attribute> {
        let text = |it: &String| Attribute::Text(it.clone());
        let version = |it: &String| Attribute::Version(it.clone());
        let number = self.int.map(Attribute::Int);
        number
            .or_else(|| self.bool.map(Attribute::Bool))
            .or_else(|| self.string.as_ref().map(text))
            .or_else(|| self.version.as_ref().map(version))
    }
}

impl Amount {
    /// Thousandths; what does not parse is nothing.
    pub(super) fn millis(&self) -> i64 {
        match self {
            Self::Wrapped { value } | Self::Text(value) => {
                apis::quantity::parse_millis(value).unwrap_or(0)
            }
            Self::Number(number) => number.saturating_mul(1000),
        }
    }
}

impl Claim {
    /// Driver, pool and name of the devices that it has.
    pub(super) fn devices(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let results = self.status.allocation.iter();
        let results = results.flat_map(|it| &it.devices.results);
        results.map(|it| (it.driver.as_str(), it.pool.as_str(), it.device.as_str()))
    }

    /// Whether somebody uses it, and all who do are among these UIDs.
    pub(super) fn is_reserved_only_for(&self, uids: &BTreeSet<&str>) -> bool {
        let consumers = &self.status.reserved_for;
        !consumers.is_empty() && consumers.iter().all(|it| uids.contains(it.uid.as_str()))
    }
}
