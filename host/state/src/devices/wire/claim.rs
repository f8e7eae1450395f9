//! DeviceClasses, ResourceClaims and what is allocated to them, as the API has them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::NodeSelector;
use serde::Deserialize;

use super::capacity::Amount;

#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::devices) struct ClassSpec {
    #[serde(default)]
    pub(in crate::devices) selectors: Vec<Selector>,
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::devices) struct Selector {
    #[serde(default)]
    pub(in crate::devices) cel: Option<Cel>,
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::devices) struct Cel {
    pub(in crate::devices) expression: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(in crate::devices) struct Claim {
    pub(in crate::devices) spec: ClaimSpec,
    #[serde(default)]
    pub(in crate::devices) status: ClaimStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::devices) struct ClaimSpec {
    #[serde(default)]
    pub(in crate::devices) devices: ClaimDevices,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub(in crate::devices) struct ClaimDevices {
    #[serde(default)]
    pub(in crate::devices) requests: Vec<WireRequest>,
    #[serde(default)]
    pub(in crate::devices) constraints: Vec<WireConstraint>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct WireRequest {
    pub(in crate::devices) name: String,
    #[serde(default)]
    pub(in crate::devices) exactly: Option<ExactRequest>,
    #[serde(default)]
    pub(in crate::devices) first_available: Vec<ExactRequest>,
    /// Where v1beta1 has it.
    #[serde(flatten)]
    pub(in crate::devices) inline: ExactRequest,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct ExactRequest {
    /// Of a sub-request only; a request has its own.
    #[serde(default)]
    pub(in crate::devices) name: Option<String>,
    #[serde(default)]
    pub(in crate::devices) device_class_name: Option<String>,
    #[serde(default)]
    pub(in crate::devices) selectors: Vec<Selector>,
    #[serde(default)]
    pub(in crate::devices) allocation_mode: Option<String>,
    #[serde(default)]
    pub(in crate::devices) count: Option<i64>,
    #[serde(default)]
    pub(in crate::devices) admin_access: Option<bool>,
    #[serde(default)]
    capacity: Option<CapacityRequests>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct CapacityRequests {
    #[serde(default)]
    requests: BTreeMap<String, Amount>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct WireConstraint {
    #[serde(default)]
    pub(in crate::devices) requests: Vec<String>,
    #[serde(default)]
    pub(in crate::devices) match_attribute: Option<String>,
    #[serde(default)]
    pub(in crate::devices) distinct_attribute: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct ClaimStatus {
    #[serde(default)]
    pub(in crate::devices) allocation: Option<Allocation>,
    #[serde(default)]
    reserved_for: Vec<Consumer>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct Allocation {
    #[serde(default)]
    devices: AllocatedDevices,
    #[serde(default)]
    pub(in crate::devices) node_selector: Option<NodeSelector>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct AllocatedDevices {
    #[serde(default)]
    results: Vec<AllocatedDevice>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::devices) struct AllocatedDevice {
    driver: String,
    pool: String,
    device: String,
    #[serde(default)]
    consumed_capacity: BTreeMap<String, Amount>,
    #[serde(default)]
    admin_access: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
struct Consumer {
    #[serde(default)]
    uid: String,
}

impl ExactRequest {
    /// Parts of capacities that it asks for.
    pub(in crate::devices) fn capacities(&self) -> impl Iterator<Item = (&String, &Amount)> {
        self.capacity.iter().flat_map(|it| &it.requests)
    }
}

impl AllocatedDevice {
    /// Driver, pool and name.
    pub(in crate::devices) fn key(&self) -> (&str, &str, &str) {
        (&self.driver, &self.pool, &self.device)
    }

    /// Amount of a capacity that its claim has, in thousandths.
    pub(in crate::devices) fn consumed(&self, capacity: &str) -> i64 {
        self.consumed_capacity
            .get(capacity)
            .map_or(0, Amount::millis)
    }
}

impl Claim {
    /// The devices that it keeps from others: those that it merely watches over stay to be had, as in kube-scheduler.
    pub(in crate::devices) fn taken(&self) -> impl Iterator<Item = &AllocatedDevice> {
        let results = self.status.allocation.iter();
        let results = results.flat_map(|it| &it.devices.results);
        results.filter(|it| it.admin_access != Some(true))
    }

    /// Whether somebody uses it, and all who do are among these UIDs.
    pub(in crate::devices) fn is_reserved_only_for(&self, uids: &BTreeSet<&str>) -> bool {
        let consumers = &self.status.reserved_for;
        !consumers.is_empty() && consumers.iter().all(|it| uids.contains(it.uid.as_str()))
    }
}
