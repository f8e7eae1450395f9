//! The search for devices that satisfy all claims of a pod where it could run.
//!
//! Devices are counted, kept from being given twice and held to constraints; selectors were read before.

use smallvec::{SmallVec, smallvec};

use super::{Allocator, FoundDevices, Site, Tie};
use crate::device::{
    Access, DeviceCandidate, DeviceClaim, DeviceCount, DeviceIndex, Devices, MatchAttribute,
};
use crate::requirements::Requirements;

/// Devices that are tried for one pod on one node before it is given up: Karpenter's five seconds, without a clock.
const STEPS_MAX: usize = 100_000;

/// More devices a claim may not have.
const DEVICES_PER_CLAIM_MAX: usize = 32;

/// A device picked for a request.
struct Pick<'a> {
    claim: usize,
    request: &'a str,
    candidate: &'a DeviceCandidate,
    /// What nodes that can use it are like.
    term: Option<&'a Requirements>,
    /// What was asked of a new node before.
    asked: Requirements,
}

/// What an alternative of a request may be given.
struct Supply<'a> {
    request: &'a str,
    near: Vec<&'a DeviceCandidate>,
    /// Whether a device may be given twice.
    repeats: bool,
}

/// A search under way.
pub(super) struct Search<'a> {
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

impl<'a> Search<'a> {
    /// `asked` is what other claims of the pod ask of a new node already.
    pub(super) fn new(
        allocator: &'a Allocator<'a>,
        site: Site<'a>,
        claims: Vec<&'a DeviceClaim>,
        asked: Requirements,
    ) -> Self {
        let slots = claims.iter().enumerate().flat_map(|(at, claim)| {
            let requests = 0..claim.requests.len();
            requests.map(move |request| (at, request))
        });
        Self {
            allocator,
            site,
            slots: slots.collect(),
            claims,
            counters: allocator.counters.clone(),
            picks: Vec::new(),
            asked,
            steps: 0,
        }
    }

    pub(super) fn run(mut self) -> Option<FoundDevices> {
        self.fill(0).then(|| self.found())
    }

    /// Satisfies the requests from a position on; what was picked stays when it succeeds.
    fn fill(&mut self, at: usize) -> bool {
        let Some(&(claim, request)) = self.slots.get(at) else {
            return true;
        };
        let request = &self.claims[claim].requests[request];
        request.alternatives.iter().any(|alternative| {
            let near = alternative.candidates.iter();
            let near = near.filter(|it| !self.ways(it.device).is_empty());
            let near: Vec<&DeviceCandidate> = near.collect();
            let (count, repeats) = match alternative.count {
                DeviceCount::Exactly(count) => (count, true),
                DeviceCount::All if near.is_empty() || self.is_in_doubt() => return false,
                DeviceCount::All => (near.len(), false),
            };
            let supply = Supply {
                request: &alternative.name,
                near,
                repeats,
            };
            self.choose(at, &supply, 0, count)
        })
    }

    /// Picks that many of the devices from a position on, and goes on.
    fn choose(&mut self, at: usize, supply: &Supply<'a>, from: usize, count: usize) -> bool {
        if count == 0 {
            return self.fill(at + 1);
        }
        let claim = self.slots[at].0;
        let all: &'a Devices = self.allocator.all;
        let is_repeatable =
            |it: &&DeviceCandidate| supply.repeats && all.devices[it.device].is_shared;
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
                if self.choose(at, supply, next, count - 1) {
                    return true;
                }
                self.put_back();
            }
        }
        false
    }

    fn may_pick(&self, claim: usize, request: &str, candidate: &DeviceCandidate) -> bool {
        let DeviceCandidate {
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
        candidate: &'a DeviceCandidate,
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
            (Access::Node(name), Site::Node(node)) if node.node_ref.node_name() == Some(name) => {
                smallvec![None]
            }
            (Access::Node(_), Site::Node(_) | Site::New(_)) => SmallVec::new(),
            (Access::Selected(terms), Site::Node(node)) => {
                let term = terms.iter().find(|term| node.meets_all(term));
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

    fn found(self) -> FoundDevices {
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
        FoundDevices {
            claims: claims
                .map(|(at, claim)| (claim.key.clone(), tie(at)))
                .collect(),
            devices: self.picks.iter().map(|it| it.candidate.clone()).collect(),
            asked: self.asked,
        }
    }
}
