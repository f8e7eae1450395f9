//! Devices that pods claim: what there is, what is asked for, and the search that brings both together.
//!
//! Which device satisfies which request was found out before, by selectors; here devices are counted, kept from being
//! given twice and held to constraints. Answers to Karpenter's `pkg/scheduling/dynamicresources`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::existing_node::ExistingNode;
use crate::pod::PodKey;
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
    /// Whether its pool is as its driver wants it: all slices are known, and they do not contradict each other.
    pub is_of_sound_pool: bool,
    /// Whether it serves several claims at once; then counters say how much of it is left.
    pub is_shared: bool,
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
    pub candidates: Vec<Candidate>,
}

/// A device that a request may be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The device.
    pub device: DeviceIndex,
    /// What that takes of [`Devices::counters`].
    pub takes: Vec<(usize, i64)>,
    /// Whether others may have it too.
    pub is_shared: bool,
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
#[derive(Clone, Copy)]
pub(crate) enum Site<'a> {
    /// A node that exists.
    Node(&'a ExistingNode),
    /// A node to be, which has no devices of its own that are known; tells whether the pod could get one like this.
    New(&'a dyn Fn(&Requirements) -> bool),
}

/// From where the devices of a claim can be used.
#[derive(Debug, Clone)]
enum Tie {
    Anywhere,
    Node(String),
    Nodes(Requirements),
}

/// Gives devices to claims.
#[derive(Debug)]
pub(crate) struct Allocator<'a> {
    all: &'a Devices,
    taken: BTreeSet<DeviceIndex>,
    counters: Vec<i64>,
    /// Claims that were given devices.
    given: BTreeMap<PodKey, Tie>,
}

/// Devices found for a pod.
#[derive(Debug, Default)]
pub(crate) struct Found {
    devices: Vec<Candidate>,
    claims: Vec<(PodKey, Tie)>,
    /// What a new node must be like to use them.
    pub(crate) asked: Requirements,
}

/// A device picked for a request.
struct Pick<'a> {
    claim: usize,
    request: &'a str,
    candidate: &'a Candidate,
    /// What nodes that can use it are like.
    term: Option<&'a Requirements>,
    /// What was asked of a new node before.
    asked: Requirements,
}

/// What an alternative of a request may be given.
struct Supply<'a> {
    request: &'a str,
    near: Vec<&'a Candidate>,
    /// Whether a device may be given twice.
    repeats: bool,
}

/// A search under way.
struct Search<'a> {
    allocator: &'a Allocator<'a>,
    site: Site<'a>,
    claims: Vec<&'a DeviceClaim>,
    /// Position of the claim and of its request.
    slots: Vec<(usize, usize)>,
    counters: Vec<i64>,
    picks: Vec<Pick<'a>>,
    /// What a new node must be like so far.
    asked: Requirements,
    steps: usize,
}

impl<'a> Allocator<'a> {
    pub(crate) fn new(all: &'a Devices) -> Self {
        let taken = all.devices.iter().enumerate();
        Self {
            all,
            taken: taken
                .filter(|(_, it)| it.is_taken && !it.is_shared)
                .map(|(at, _)| at)
                .collect(),
            counters: all.counters.clone(),
            given: BTreeMap::new(),
        }
    }

    /// Devices for all claims of a pod that it could use there.
    pub(crate) fn find(&self, pod: &PodKey, site: Site<'_>) -> Option<Found> {
        let mut claims = Vec::new();
        let mut asked = Requirements::new();
        for claim in self.claims_of(pod) {
            match (self.given.get(&claim.key), site) {
                (None, _) => claims.push(&**claim),
                (Some(Tie::Anywhere), _) => {}
                (Some(Tie::Node(name)), Site::Node(node)) if *name == node.name => {}
                (Some(Tie::Nodes(nodes)), Site::Node(node)) if has(node, nodes) => {}
                (Some(Tie::Nodes(nodes)), Site::New(may_be)) if asked.meets(nodes) => {
                    asked.extend_with(nodes);
                    if !may_be(&asked) {
                        return None;
                    }
                }
                (Some(Tie::Node(_) | Tie::Nodes(_)), Site::Node(_) | Site::New(_)) => return None,
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
            asked,
            steps: 0,
        };
        search.fill(0).then(|| search.found())
    }

    /// Takes what was found.
    pub(crate) fn take(&mut self, found: Found) {
        for candidate in found.devices {
            for (counter, amount) in candidate.takes {
                self.counters[counter] -= amount;
            }
            if !candidate.is_shared {
                self.taken.insert(candidate.device);
            }
        }
        self.given.extend(found.claims);
    }

    /// What stands in the way of a pod's claims, in words.
    pub(crate) fn lack(&self, pod: &PodKey) -> String {
        let mut lacks = Vec::new();
        for claim in self.claims_of(pod) {
            let place = match self.given.get(&claim.key) {
                None => None,
                Some(Tie::Anywhere) => continue,
                Some(Tie::Node(node)) => Some(format!("on node {node}")),
                Some(Tie::Nodes(nodes)) => Some(format!("at {nodes}")),
            };
            if let Some(place) = place {
                lacks.push(format!("the devices of claim {} are {place}", claim.key));
                continue;
            }
            for request in &claim.requests {
                let candidates = request.alternatives.iter().flat_map(|it| &it.candidates);
                let candidates: BTreeSet<_> = candidates.map(|it| it.device).collect();
                let free = candidates.iter().filter(|it| !self.taken.contains(*it));
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
            let near = alternative.candidates.iter();
            let near = near.filter(|it| !self.ways(it.device).is_empty());
            let near: Vec<&Candidate> = near.collect();
            let (count, repeats) = match alternative.count {
                Count::Exactly(count) => (count, true),
                Count::All if near.is_empty() || self.is_in_doubt() => return false,
                Count::All => (near.len(), false),
            };
            let supply = Supply {
                request: &alternative.name,
                near,
                repeats,
            };
            self.choose(at, &supply, (0, count))
        })
    }

    /// Picks that many of the devices from a position on, and goes on.
    fn choose(&mut self, at: usize, supply: &Supply<'a>, (from, count): (usize, usize)) -> bool {
        if count == 0 {
            return self.fill(at + 1);
        }
        let claim = self.slots[at].0;
        let all: &'a Devices = self.allocator.all;
        let is_repeatable = |it: &&Candidate| supply.repeats && all.devices[it.device].is_shared;
        for (index, candidate) in supply.near.iter().enumerate().skip(from) {
            let rest = &supply.near[index..];
            if rest.len() < count && !rest.iter().any(is_repeatable) {
                return false;
            }
            let next = index + usize::from(!is_repeatable(candidate));
            for term in self.ways(candidate.device) {
                if self.steps >= STEPS_MAX {
                    return false;
                }
                self.steps += 1;
                if !self.may_pick(claim, supply.request, candidate) {
                    continue;
                }
                self.pick(claim, supply.request, candidate, term);
                if self.choose(at, supply, (next, count - 1)) {
                    return true;
                }
                self.put_back();
            }
        }
        false
    }

    fn may_pick(&self, claim: usize, request: &str, candidate: &Candidate) -> bool {
        let Candidate {
            device,
            takes,
            is_shared,
        } = candidate;
        let of_claim = self.picks.iter().filter(|it| it.claim == claim);
        let is_free = || {
            let mut picks = self.picks.iter();
            let is_same = |it: &Pick<'_>| it.candidate.device == *device && !it.candidate.is_shared;
            !self.allocator.taken.contains(device) && !picks.any(is_same)
        };
        (*is_shared || is_free())
            && of_claim.count() < DEVICES_PER_CLAIM_MAX
            && takes
                .iter()
                .all(|(counter, amount)| self.counters[*counter] >= *amount)
            && self.keeps_constraints(claim, request, *device)
    }

    fn pick(
        &mut self,
        claim: usize,
        request: &'a str,
        candidate: &'a Candidate,
        term: Option<&'a Requirements>,
    ) {
        for (counter, amount) in &candidate.takes {
            self.counters[*counter] -= amount;
        }
        let asked = self.asked.clone();
        if let (Some(term), Site::New(_)) = (term, self.site) {
            self.asked.extend_with(term);
        }
        self.picks.push(Pick {
            claim,
            request,
            candidate,
            term,
            asked,
        });
    }

    fn put_back(&mut self) {
        if let Some(pick) = self.picks.pop() {
            for (counter, amount) in &pick.candidate.takes {
                self.counters[*counter] += amount;
            }
            self.asked = pick.asked;
        }
    }

    /// The first device of a constraint says which value the others must have.
    fn keeps_constraints(&self, claim: usize, request: &str, device: DeviceIndex) -> bool {
        let devices = &self.allocator.all.devices;
        let is_meant = |constraint: &MatchAttribute, name: &str| {
            let request = name.split('/').next();
            let mut names = constraint.requests.iter().map(String::as_str);
            constraint.requests.is_empty() || names.any(|it| it == name || Some(it) == request)
        };
        let constraints = self.claims[claim].constraints.iter();
        let mut constraints = constraints.filter(|it| is_meant(it, request));
        constraints.all(|constraint| {
            let Some(value) = devices[device].attributes.get(&constraint.attribute) else {
                return false;
            };
            let picks = self.picks.iter().filter(|it| it.claim == claim);
            let mut others = picks.filter(|it| is_meant(constraint, it.request));
            others.all(|other| {
                let other = &devices[other.candidate.device];
                other.attributes.get(&constraint.attribute) == Some(value)
            })
        })
    }

    /// Ways in which a node can use a device: what it must be like, where that matters.
    fn ways(&self, device: DeviceIndex) -> SmallVec<[Option<&'a Requirements>; 1]> {
        let all: &'a Devices = self.allocator.all;
        match (&all.devices[device].access, self.site) {
            (Access::Everywhere, _) => smallvec![None],
            (Access::Node(name), Site::Node(node)) if *name == node.name => smallvec![None],
            (Access::Node(_), Site::Node(_) | Site::New(_)) => SmallVec::new(),
            (Access::Selected(terms), Site::Node(node)) => {
                let term = terms.iter().find(|term| has(node, term));
                term.map(Some).into_iter().collect()
            }
            (Access::Selected(terms), Site::New(may_be)) => {
                let is_open = |term: &&Requirements| {
                    let mut asked = self.asked.clone();
                    let is_open = asked.meets(term);
                    asked.extend_with(term);
                    is_open && may_be(&asked)
                };
                terms.iter().filter(is_open).map(Some).collect()
            }
        }
    }

    /// Whether nobody knows all devices that could be used here.
    fn is_in_doubt(&self) -> bool {
        let mut devices = self.allocator.all.devices.iter().enumerate();
        devices.any(|(at, device)| !device.is_of_sound_pool && !self.ways(at).is_empty())
    }

    fn found(self) -> Found {
        let devices = &self.allocator.all.devices;
        let tie = |claim: usize| {
            let mut tie = Tie::Anywhere;
            for pick in self.picks.iter().filter(|it| it.claim == claim) {
                let access = &devices[pick.candidate.device].access;
                match (access, &mut tie) {
                    (Access::Node(name), _) => return Tie::Node(name.clone()),
                    (Access::Selected(_), Tie::Nodes(nodes)) => {
                        nodes.extend_with(pick.term.unwrap_or(&Requirements::new()));
                    }
                    (Access::Selected(_), _) => {
                        tie = Tie::Nodes(pick.term.cloned().unwrap_or_default());
                    }
                    (Access::Everywhere, _) => {}
                }
            }
            tie
        };
        let claims = self.claims.iter().enumerate();
        Found {
            claims: claims
                .map(|(at, claim)| (claim.key.clone(), tie(at)))
                .collect(),
            devices: self.picks.iter().map(|it| it.candidate.clone()).collect(),
            asked: self.asked,
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
