//! Gives devices to the claims of pods, each device once.
//!
//! Which of them go together is found in `search.rs`. Answers to Karpenter's `pkg/scheduling/dynamicresources`.

mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{DeviceCandidate, DeviceClaim, DeviceIndex, Devices};
use crate::existing_node::ExistingNode;
use crate::pod::PodKey;
use crate::requirements::Requirements;

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

    /// Gives devices to the pods that keep a place on a node and are not bound to it yet.
    pub(crate) fn give_to_waiting(&mut self, node: &ExistingNode) {
        for pod in node.pods.iter().filter(|it| it.node_name.is_none()) {
            let is_claimant = !self.claims_of(&pod.key).is_empty();
            if is_claimant && let Some(found) = self.find(&pod.key, Site::Node(node)) {
                self.take(found);
            }
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
                (Some(Tie::Nodes(nodes)), Site::Node(node)) if node.meets_all(nodes) => {}
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

#[cfg(test)]
mod tests {
    use apis::labels;
    use apis::resources::Resources;

    use super::*;
    use crate::device::{Access, Alternative, Device, DeviceCount, DeviceRequest, PodDevices};
    use crate::requirements::{Operator, Requirement};

    #[test]
    fn a_node_without_a_label_for_its_host_name_has_the_devices_of_that_host() {
        let (host, pod) = ("n1", PodKey::new("default", "p"));
        let term = Requirement::new(labels::HOSTNAME, Operator::In, [host]);
        let candidate = DeviceCandidate {
            device: 0,
            takes: Vec::new(),
            is_shared: false,
        };
        let alternative = Alternative {
            name: "gpu".to_owned(),
            count: DeviceCount::Exactly(1),
            candidates: vec![candidate],
        };
        let claim = DeviceClaim {
            key: pod.clone(),
            requests: vec![DeviceRequest {
                name: "gpu".to_owned(),
                alternatives: vec![alternative],
            }],
            constraints: Vec::new(),
        };
        let of_pod = PodDevices {
            claims: vec![Arc::new(claim)],
            error: None,
        };
        let all = Devices {
            devices: vec![Device {
                driver: "gpu.example.com".to_owned(),
                pool: "pool".to_owned(),
                name: "gpu-0".to_owned(),
                access: Access::Selected(vec![[term].into_iter().collect()]),
                attributes: BTreeMap::new(),
                takes: Vec::new(),
                is_of_sound_pool: true,
                is_shared: false,
                is_taken: false,
            }],
            counters: Vec::new(),
            pods: BTreeMap::from([(pod.clone(), of_pod)]),
        };
        let mut allocator = Allocator::new(&all);
        for (name, expected) in [(host, true), ("n2", false)] {
            let node = ExistingNode::empty(name, Resources::new());
            let found = allocator.find(&pod, Site::Node(&node));
            assert_eq!(found.is_some(), expected, "{name}");
        }
        let node = ExistingNode::empty(host, Resources::new());
        let found = allocator.find(&pod, Site::Node(&node)).unwrap_or_default();
        allocator.take(found);
        let again = allocator.find(&pod, Site::Node(&node));
        assert!(again.is_some(), "the claim has its device there");
    }
}
