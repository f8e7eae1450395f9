//! Devices that pods claim: what there is and what is asked for.
//!
//! Which device satisfies which request was found out before, by selectors; `allocator.rs` brings both together.
//! Answers to Karpenter's `pkg/scheduling/dynamicresources`.

mod allocator;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pod::PodKey;
use crate::requirements::Requirements;

pub(crate) use allocator::{Allocator, FoundDevices, Site};

/// Position of a device in [`Devices`].
pub type DeviceIndex = usize;

/// Where a device can be used.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// On the node of this name.
    Node(String),
    /// On every node.
    Everywhere,
    /// On nodes that satisfy one of these.
    Selected(Vec<Requirements>),
}

/// A value that a device has for an attribute.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attribute {
    /// A whole number.
    Int(i64),
    /// True or false.
    Bool(bool),
    Text(String),
    /// A version by semver.org.
    Version(String),
}

/// A device that a driver offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    pub driver: String,
    /// Pool of the driver.
    pub pool: String,
    /// Name within the pool.
    pub name: String,
    /// Where it can be used.
    pub access: Access,
    /// Attributes by their full names.
    pub attributes: BTreeMap<String, Attribute>,
    /// Amounts that it takes of [`Devices::counters`], by position there.
    pub takes: Vec<(usize, i64)>,
    /// Whether its pool is as its driver wants it: all slices are known, and they do not contradict each other.
    pub is_of_sound_pool: bool,
    /// Whether it serves several claims at once; then counters say how much of it is left.
    pub is_shared: bool,
    /// Whether a claim has it already.
    pub is_taken: bool,
}

/// How many devices a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceCount {
    /// This many devices.
    Exactly(usize),
    /// All there are, at least one.
    All,
}

/// One way to satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// Name of the request, with that of the sub-request after a slash.
    pub name: String,
    /// Number of devices.
    pub count: DeviceCount,
    /// Devices that the selectors admit, in order.
    pub candidates: Vec<DeviceCandidate>,
}

/// A device that a request may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceCandidate {
    pub device: DeviceIndex,
    /// Amounts that the request takes of [`Devices::counters`], by position there.
    pub takes: Vec<(usize, i64)>,
    /// Whether others may have it too.
    pub is_shared: bool,
}

/// A request of a claim: the first alternative that can be had counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    pub name: String,
    /// In order of preference.
    pub alternatives: Vec<Alternative>,
}

/// All devices of these requests have one value for an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchAttribute {
    /// Names of requests; none means all.
    pub requests: Vec<String>,
    /// Full name of the attribute.
    pub attribute: String,
}

/// A claim to which nothing is allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceClaim {
    /// Namespace and name of the ResourceClaim.
    pub key: PodKey,
    pub requests: Vec<DeviceRequest>,
    pub constraints: Vec<MatchAttribute>,
}

/// Claims of a pod on devices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodDevices {
    /// Claims to which nothing is allocated yet.
    pub claims: Vec<Arc<DeviceClaim>>,
    /// Why its claims cannot be looked at, when they cannot.
    pub error: Option<String>,
}

/// Devices of a problem, and who claims any.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Devices {
    /// All devices, in order of driver, pool and name.
    pub devices: Vec<Device>,
    /// Amounts left of the counters that devices share.
    pub counters: Vec<i64>,
    /// Claims of pods, also of those that keep a place on a node; pods without claims are absent.
    pub pods: BTreeMap<PodKey, PodDevices>,
}
