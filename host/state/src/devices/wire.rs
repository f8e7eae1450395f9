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
    /// Of the object's owners.
    #[serde(skip)]
    pub(super) owner_node: Option<String>,
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
    pub(super) capacity: BTreeMap<String, Capacity>,
    #[serde(default)]
    allow_multiple_allocations: bool,
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

/// A capacity of a device, alone or with the rules for parts of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Capacity {
    #[serde(rename_all = "camelCase")]
    Ruled {
        value: Amount,
        #[serde(default)]
        request_policy: Option<RequestPolicy>,
    },
    Bare(Amount),
}

/// Which parts of a capacity a claim may have.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestPolicy {
    #[serde(default)]
    default: Option<Amount>,
    #[serde(default)]
    valid_values: Vec<Amount>,
    #[serde(default)]
    valid_range: Option<ValidRange>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct ValidRange {
    #[serde(default)]
    min: Option<Amount>,
    #[serde(default)]
    max: Option<Amount>,
    #[serde(default)]
    step: Option<Amount>,
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
pub(super) struct Constraint {
    #[serde(default)]
    pub(super) requests: Vec<String>,
    #[serde(default)]
    pub(super) match_attribute: Option<String>,
    #[serde(default)]
    pub(super) distinct_attribute: Option<String>,
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
#[serde(rename_all = "camelCase")]
pub(super) struct AllocatedDevice {
    driver: String,
    pool: String,
    device: String,
    #[serde(default)]
    consumed_capacity: BTreeMap<String, Amount>,
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

/// Whether the slices of a pool do not contradict each other: no two devices or sets of counters have one name, and
/// devices take from counters that there are.
pub(super) fn is_consistent(slices: &[&SliceSpec]) -> bool {
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

impl Capacity {
    /// All of it, in thousandths.
    pub(super) fn millis(&self) -> i64 {
        match self {
            Self::Ruled { value, .. } | Self::Bare(value) => value.millis(),
        }
    }

    /// How much a claim gets that asks for so much, or for nothing in particular; `None` when the rules forbid it.
    pub(super) fn part_of(&self, asked: Option<&Amount>) -> Option<i64> {
        let policy = match self {
            Self::Ruled { request_policy, .. } => request_policy.as_ref(),
            Self::Bare(_) => None,
        };
        let default = policy
            .and_then(|it| it.default.as_ref())
            .map(Amount::millis);
        let Some(policy) = policy else {
            return Some(asked.map_or_else(|| self.millis(), Amount::millis));
        };
        let part = match asked {
            Some(asked) => policy.rounded(asked.millis()),
            None => default.unwrap_or_else(|| self.millis()),
        };
        (Some(part) == default || policy.allows(part)).then_some(part)
    }
}

impl RequestPolicy {
    /// The next part that there is.
    fn rounded(&self, asked: i64) -> i64 {
        if let Some(range) = &self.valid_range
            && let Some(min) = range.min.as_ref().map(Amount::millis)
        {
            let step = range.step.as_ref().map_or(0, Amount::millis);
            let above = asked.saturating_sub(min);
            return match (above <= 0, step <= 0) {
                (true, _) => min,
                (false, true) => asked,
                (false, false) => {
                    let rest = above % step;
                    asked.saturating_add(if rest == 0 { 0 } else { step - rest })
                }
            };
        }
        let mut values = self.valid_values.iter().map(Amount::millis);
        values.find(|it| asked <= *it).unwrap_or(asked)
    }

    fn allows(&self, part: i64) -> bool {
        if let Some(ValidRange { min, max, step }) = &self.valid_range {
            let of = |amount: &Option<Amount>| amount.as_ref().map(Amount::millis);
            let from_min = part.saturating_sub(of(min).unwrap_or(0));
            let is_on_step = of(step).is_none_or(|step| step <= 0 || from_min % step == 0);
            return is_on_step && of(max).is_none_or(|max| part <= max);
        }
        self.valid_values.is_empty() || self.valid_values.iter().any(|it| it.millis() == part)
    }
}

impl ExactRequest {
    /// Parts of capacities that it asks for.
    pub(super) fn capacities(&self) -> impl Iterator<Item = (&String, &Amount)> {
        self.capacity.iter().flat_map(|it| &it.requests)
    }
}

impl AllocatedDevice {
    /// Driver, pool and name.
    pub(super) fn key(&self) -> (&str, &str, &str) {
        (&self.driver, &self.pool, &self.device)
    }

    /// What its claim has of a capacity, in thousandths.
    pub(super) fn consumed(&self, capacity: &str) -> i64 {
        self.consumed_capacity
            .get(capacity)
            .map_or(0, Amount::millis)
    }
}

impl DeviceBody {
    /// Whether it serves several claims at once.
    pub(super) fn is_shared(&self) -> bool {
        self.allow_multiple_allocations
    }

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
    /// The devices that it has.
    pub(super) fn devices(&self) -> impl Iterator<Item = &AllocatedDevice> {
        let results = self.status.allocation.iter();
        results.flat_map(|it| &it.devices.results)
    }

    /// Whether somebody uses it, and all who do are among these UIDs.
    pub(super) fn is_reserved_only_for(&self, uids: &BTreeSet<&str>) -> bool {
        let consumers = &self.status.reserved_for;
        !consumers.is_empty() && consumers.iter().all(|it| uids.contains(it.uid.as_str()))
    }
}
