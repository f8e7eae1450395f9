//! Devices that pods claim: what there is, what is asked for, and the search that brings both together.
//!
//! Which device satisfies which request was found out before, by selectors; here devices are counted, kept from being
//! given twice and held to constraints. Answers to Karpenter's `pkg/scheduling/dynamicresources`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pod::PodKey;
use crate::problem::ExistingNode;
use crate::requirements::{Requirements, is_negative};

/// Position of a device in [`Devices`].
pub type DeviceIndex = usize;

/// More devices a claim may not have.
const DEVICES_PER_CLAIM_MAX: usize = 32;
/// Devices that are tried for one pod on one node before it is given up: Karpenter's five seconds, without a clock.
const STEPS_MAX: usize = 100_000;

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
    /// A number.
    Int(i64),
    /// A truth.
    Bool(bool),
    /// A text.
    Text(String),
    /// A semantic version.
    Version(String),
}

/// A device that a driver offers.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Driver.
    pub driver: String,
    /// Pool of the driver.
    pub pool: String,
    /// Name within the pool.
    pub name: String,
    /// Where it can be used.
    pub access: Access,
    /// Attributes by their full names.
    pub attributes: BTreeMap<String, Attribute>,
    /// What it takes of [`Devices::counters`].
    pub takes: Vec<(usize, i64)>,
    /// Whether all slices of its pool are known.
    pub is_of_complete_pool: bool,
    /// Whether a claim has it already.
    pub is_taken: bool,
}

/// How many devices a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Exactly(usize),
    /// All there are, at least one.
    All,
}

/// One way to satisfy a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alternative {
    /// Name of the request, with that of the sub-request after a slash.
    pub name: String,
    /// How many devices.
    pub count: Count,
    /// Devices that the selectors admit, in order.
    pub candidates: Vec<DeviceIndex>,
}

/// A request of a claim: the first alternative that can be had counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Name.
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
    /// Namespace and name.
    pub key: PodKey,
    /// Requests.
    pub requests: Vec<DeviceRequest>,
    /// Constraints.
    pub constraints: Vec<MatchAttribute>,
}

/// What a pod claims.
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
    /// What is left of counters that devices share.
    pub counters: Vec<i64>,
    /// Claims of pods; pods without claims are absent.
    pub pods: BTreeMap<PodKey, PodDevices>,
}

/// Where devices are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Site<'a> {
    /// A node that exists.
    Node(&'a ExistingNode),
    /// A node to be, of which no devices are known.
    New,
}

/// Gives devices to claims.
#[derive(Debug)]
pub(crate) struct Allocator<'a> {
    all: &'a Devices,
    taken: BTreeSet<DeviceIndex>,
    counters: Vec<i64>,
    /// Claims that were given devices, with the only node from which they can be used.
    given: BTreeMap<PodKey, Option<String>>,
}

/// Devices found for a pod.
#[derive(Debug, Default)]
pub(crate) struct Found {
    devices: Vec<DeviceIndex>,
    claims: Vec<(PodKey, Option<String>)>,
}

/// A search under way.
struct Search<'a> {
    allocator: &'a Allocator<'a>,
    site: Site<'a>,
    claims: Vec<&'a DeviceClaim>,
    /// Position of the claim and of its request.
    slots: Vec<(usize, usize)>,
    counters: Vec<i64>,
    /// Claim, name of the request, device.
    picks: Vec<(usize, &'a str, DeviceIndex)>,
    steps: usize,
}

impl<'a> Allocator<'a> {
    pub(crate) fn new(all: &'a Devices) -> Self {
        let taken = all.devices.iter().enumerate();
        Self {
            all,
            taken: taken
                .filter(|(_, it)| it.is_taken)
                .map(|(at, _)| at)
                .collect(),
            counters: all.counters.clone(),
            given: BTreeMap::new(),
        }
    }

    /// Devices for all claims of a pod that it could use there.
    pub(crate) fn find(&self, pod: &PodKey, site: Site<'_>) -> Option<Found> {
        let mut claims = Vec::new();
        for claim in self.claims_of(pod) {
            match (self.given.get(&claim.key), site) {
                (None, _) => claims.push(&**claim),
                (Some(None), _) => {}
                (Some(Some(name)), Site::Node(node)) if *name == node.name => {}
                (Some(Some(_)), Site::Node(_) | Site::New) => return None,
            }
        }
        let slot = |(at, claim): (usize, &&DeviceClaim)| {
            let requests = 0..claim.requests.len();
            requests
                .map(move |request| (at, request))
                .collect::<Vec<_>>()
        };
        let mut search = Search {
            allocator: self,
            site,
            slots: claims.iter().enumerate().flat_map(slot).collect(),
            claims,
            counters: self.counters.clone(),
            picks: Vec::new(),
            steps: 0,
        };
        search.fill(0).then(|| search.found())
    }

    /// Takes what was found.
    pub(crate) fn take(&mut self, found: Found) {
        for device in found.devices {
            for (counter, amount) in &self.all.devices[device].takes {
                self.counters[*counter] -= amount;
            }
            self.taken.insert(device);
        }
        self.given.extend(found.claims);
    }

    /// What stands in the way of a pod's claims, in words.
    pub(crate) fn lack(&self, pod: &PodKey) -> String {
        let mut lacks = Vec::new();
        for claim in self.claims_of(pod) {
            if let Some(Some(node)) = self.given.get(&claim.key) {
                lacks.push(format!(
                    "the devices of claim {} are on node {node}",
                    claim.key
                ));
                continue;
            }
            for request in &claim.requests {
                let candidates = request.alternatives.iter().flat_map(|it| &it.candidates);
                let candidates: BTreeSet<_> = candidates.collect();
                let free = candidates.iter().filter(|it| !self.taken.contains(**it));
                lacks.push(format!(
                    "claim {}, request {}: {} devices match, {} of them are free",
                    claim.key,
                    request.name,
                    candidates.len(),
                    free.count()
                ));
            }
        }
        lacks.join("; ")
    }

    fn claims_of(&self, pod: &PodKey) -> &'a [Arc<DeviceClaim>] {
        self.all.pods.get(pod).map_or(&[], |it| &it.claims)
    }
}

impl<'a> Search<'a> {
    /// Satisfies the requests from a position on; what was picked stays when it succeeds.
    fn fill(&mut self, at: usize) -> bool {
        let Some(&(claim, request)) = self.slots.get(at) else {
            return true;
        };
        let request = &self.claims[claim].requests[request];
        request.alternatives.iter().any(|alternative| {
            let is_near = |it: &&DeviceIndex| self.is_accessible(**it);
            let near: Vec<DeviceIndex> = alternative
                .candidates
                .iter()
                .filter(is_near)
                .copied()
                .collect();
            let count = match alternative.count {
                Count::Exactly(count) => count,
                Count::All => {
                    let devices = &self.allocator.all.devices;
                    let is_known = near.iter().all(|it| devices[*it].is_of_complete_pool);
                    if near.is_empty() || !is_known {
                        return false;
                    }
                    near.len()
                }
            };
            self.choose(at, (&alternative.name, &near), count)
        })
    }

    /// Picks that many of the devices and goes on.
    fn choose(&mut self, at: usize, (name, near): (&'a str, &[DeviceIndex]), count: usize) -> bool {
        if count == 0 {
            return self.fill(at + 1);
        }
        let claim = self.slots[at].0;
        for (index, device) in near.iter().enumerate() {
            if near.len() - index < count || self.steps >= STEPS_MAX {
                return false;
            }
            self.steps += 1;
            if !self.pick(claim, name, *device) {
                continue;
            }
            if self.choose(at, (name, &near[index + 1..]), count - 1) {
                return true;
            }
            self.put_back();
        }
        false
    }

    fn pick(&mut self, claim: usize, name: &'a str, device: DeviceIndex) -> bool {
        let it = &self.allocator.all.devices[device];
        let of_claim = self.picks.iter().filter(|(other, ..)| *other == claim);
        let is_free = !self.allocator.taken.contains(&device)
            && self.picks.iter().all(|(.., other)| *other != device)
            && of_claim.count() < DEVICES_PER_CLAIM_MAX
            && it
                .takes
                .iter()
                .all(|(counter, amount)| self.counters[*counter] >= *amount)
            && self.keeps_constraints(claim, name, device);
        if is_free {
            for (counter, amount) in &it.takes {
                self.counters[*counter] -= amount;
            }
            self.picks.push((claim, name, device));
        }
        is_free
    }

    fn put_back(&mut self) {
        if let Some((.., device)) = self.picks.pop() {
            for (counter, amount) in &self.allocator.all.devices[device].takes {
                self.counters[*counter] += amount;
            }
        }
    }

    /// The first device of a constraint says which value the others must have.
    fn keeps_constraints(&self, claim: usize, name: &str, device: DeviceIndex) -> bool {
        let devices = &self.allocator.all.devices;
        let is_meant = |constraint: &MatchAttribute, name: &str| {
            let request = name.split('/').next();
            let mut names = constraint.requests.iter().map(String::as_str);
            constraint.requests.is_empty() || names.any(|it| it == name || Some(it) == request)
        };
        let constraints = self.claims[claim].constraints.iter();
        let mut constraints = constraints.filter(|it| is_meant(it, name));
        constraints.all(|constraint| {
            let Some(value) = devices[device].attributes.get(&constraint.attribute) else {
                return false;
            };
            let picks = self.picks.iter();
            let mut others =
                picks.filter(|(other, name, _)| *other == claim && is_meant(constraint, name));
            others.all(|(.., other)| {
                devices[*other].attributes.get(&constraint.attribute) == Some(value)
            })
        })
    }

    fn is_accessible(&self, device: DeviceIndex) -> bool {
        match (&self.allocator.all.devices[device].access, self.site) {
            (Access::Everywhere, _) => true,
            (Access::Node(name), Site::Node(node)) => *name == node.name,
            (Access::Selected(terms), Site::Node(node)) => terms.iter().any(|term| has(node, term)),
            (Access::Node(_) | Access::Selected(_), Site::New) => false,
        }
    }

    fn found(self) -> Found {
        let node = match self.site {
            Site::Node(node) => Some(node.name.clone()),
            Site::New => None,
        };
        let devices = &self.allocator.all.devices;
        let tied = |claim: usize| {
            let mut picks = self.picks.iter().filter(|(other, ..)| *other == claim);
            let is_tied = picks.any(|(.., it)| devices[*it].access != Access::Everywhere);
            node.clone().filter(|_| is_tied)
        };
        let claims = self.claims.iter().enumerate();
        Found {
            claims: claims
                .map(|(at, claim)| (claim.key.clone(), tied(at)))
                .collect(),
            devices: self.picks.iter().map(|(.., device)| *device).collect(),
        }
    }
}

fn has(node: &ExistingNode, requirements: &Requirements) -> bool {
    requirements
        .iter()
        .all(|it| match node.labels.get(it.key()) {
            Some(value) => it.has(value),
            None => is_negative(it.operator()),
        })
}
