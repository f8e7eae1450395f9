//! Gives devices to the claims of pods, each device once.
//!
//! Which of them go together is found in `search.rs`. Answers to Karpenter's `pkg/scheduling/dynamicresources`.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{DeviceCandidate, DeviceClaim, DeviceIndex, Devices};
use crate::existing_node::ExistingNode;
use crate::pod::PodKey;
use crate::requirements::{Requirements, is_negative};

use search::Search;

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
pub(crate) struct FoundDevices {
    devices: Vec<DeviceCandidate>,
    claims: Vec<(PodKey, Tie)>,
    /// What a new node must be like to use them.
    pub(crate) asked: Requirements,
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
    pub(crate) fn find(&self, pod: &PodKey, site: Site<'_>) -> Option<FoundDevices> {
        let mut claims = Vec::new();
        let mut asked = Requirements::new();
        for claim in self.claims_of(pod) {
            match (self.given.get(&claim.key), site) {
                (None, _) => claims.push(&**claim),
                (Some(Tie::Anywhere), _) => {}
                (Some(Tie::Node(name)), Site::Node(node))
                    if node.node_ref.node_name() == Some(name) => {}
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
        Search::new(self, site, claims, asked).run()
    }

    /// Takes what was found.
    pub(crate) fn take(&mut self, found: FoundDevices) {
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

fn has(node: &ExistingNode, requirements: &Requirements) -> bool {
    requirements
        .iter()
        .all(|it| match node.labels.get(it.key()) {
            Some(value) => it.has(value),
            None => is_negative(it.operator()),
        })
}
