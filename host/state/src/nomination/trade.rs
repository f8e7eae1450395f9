//! Pods of a plan trade places just before its nodes open, so that as many as can be are told of theirs.
//!
//! Of equal pods that must spread over zones one is told of a node at a time, and the others, told nothing, take room that was
//! meant for somebody else. Where another node of the same zone has none of their kind, one goes there and pods from there come
//! in its place: then all of them are told. Nobody loses a place by it, and no zone a pod. Decides; the shells write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::labels::{CAPACITY_TYPE, HOSTNAME, TOPOLOGY_ZONE};
use apis::resources::Resources;
use scheduling::pod::{Pod, PodKey, PodShape};
use scheduling::taints::untolerated;

use super::{opens_next, spreads_widely};
use crate::queue_order::queue_key;
use crate::snapshot::Snapshot;
use crate::state_node::StateNode;

/// For so many pods another place is looked for, of any number: each look goes over the nodes of a zone and their pods.
const LOOKS_MAX: usize = 1_000;
/// What a CPU is worth in memory where sizes of pods are compared, as most machines have it.
const BYTES_PER_CPU: i64 = 4 << 30;

/// A node that is about to open, with what is planned for it.
struct Opening<'a> {
    node: &'a StateNode,
    pods: Vec<&'a Arc<Pod>>,
    /// What the plan leaves free.
    spare: Resources,
    /// Whether a pod there keeps others away.
    is_exclusive: bool,
}

/// Which pods get another place, by the claim of the node that takes them.
pub fn trades(snapshot: &Snapshot) -> BTreeMap<String, Vec<PodKey>> {
    let nodes = snapshot.nodes().filter(|node| opens_next(node));
    let mut nodes: Vec<Opening<'_>> = nodes.map(|node| Opening::of(snapshot, node)).collect();
    nodes.sort_by_key(|it| it.node.claim_name());
    let mut moved: BTreeMap<&PodKey, usize> = BTreeMap::new();
    let mut looks = 0;
    for from in 0..nodes.len() {
        for pod in nodes[from].pods_told_late() {
            looks += 1;
            if looks > LOOKS_MAX {
                return by_claim(&nodes, &moved);
            }
            let trade = (0..nodes.len())
                .filter(|to| *to != from && sells_alike(nodes[from].node, nodes[*to].node))
                .find_map(|to| Some((to, returned(&nodes[from], &nodes[to], pod)?)));
            let Some((to, back)) = trade else { continue };
            moved.insert(&pod.key, to);
            nodes[from].gives(pod);
            for other in back {
                moved.insert(&other.key, from);
                nodes[to].gives(other);
                nodes[from].takes(other);
            }
            nodes[to].takes(pod);
        }
    }
    by_claim(&nodes, &moved)
}

fn by_claim(
    nodes: &[Opening<'_>],
    moved: &BTreeMap<&PodKey, usize>,
) -> BTreeMap<String, Vec<PodKey>> {
    let mut places: BTreeMap<String, Vec<PodKey>> = BTreeMap::new();
    for (pod, to) in moved {
        let claim = nodes.get(*to).and_then(|it| it.node.claim_name());
        if let Some(claim) = claim {
            let pods = places.entry(claim.to_owned()).or_default();
            pods.push((*pod).clone());
        }
    }
    places
}

/// What comes back for the pod, if it can go: nothing where there is room for it anyway.
fn returned<'a>(from: &Opening<'a>, to: &Opening<'a>, pod: &Pod) -> Option<Vec<&'a Arc<Pod>>> {
    if to.holds(&pod.shape) || !may_go(pod, from, to) {
        return None;
    }
    let mut room = to.spare.clone();
    let mut left = from.spare.clone().add(&pod.shape.requests);
    let mut back = Vec::new();
    if pod.shape.requests.fits(&room) {
        return Some(back);
    }
    let mut others: Vec<&Arc<Pod>> = to.pods.clone();
    others.sort_by_key(|it| (-size(it), queue_key(it)));
    let mut spread = BTreeSet::new();
    for other in others {
        let shape = &other.shape;
        let is_new_there =
            !spreads_widely(shape) || (!from.holds(shape) && !spread.contains(&Arc::as_ptr(shape)));
        if is_new_there && shape.requests.fits(&left) && may_go(other, to, from) {
            spread.insert(Arc::as_ptr(shape));
            left.sub_assign(&shape.requests);
            room.add_assign(&shape.requests);
            back.push(other);
            if pod.shape.requests.fits(&room) {
                return Some(back);
            }
        }
    }
    None
}

fn size(pod: &Pod) -> i64 {
    let requests = &pod.shape.requests;
    let memory = requests.memory_bytes() / (BYTES_PER_CPU / 1000);
    requests.cpu_millis().saturating_add(memory)
}

/// Whether nodes differ in nothing over which pods spread, as a rule.
fn sells_alike(a: &StateNode, b: &StateNode) -> bool {
    [TOPOLOGY_ZONE, CAPACITY_TYPE]
        .into_iter()
        .all(|key| a.label(key) == b.label(key))
}

/// Whether the pod may run on the other node as far as is plain to see: where it takes more to tell, it stays.
fn may_go(pod: &Pod, from: &Opening<'_>, to: &Opening<'_>) -> bool {
    let shape = &pod.shape;
    let is_plain = pod.volume_claims.is_empty()
        && pod.resource_claims.is_empty()
        && !pod.has_own_scheduler
        && shape.host_ports.is_empty()
        && shape.required_node_affinity.is_empty()
        && shape.pod_affinity.is_empty()
        && shape.pod_anti_affinity.is_empty();
    let mut spread = shape.topology_spread.iter().filter(|it| it.is_required);
    let mut selected = shape.node_selector.iter();
    is_plain
        && !to.is_exclusive
        && spread.all(|it| {
            let key = &it.topology_key;
            key != HOSTNAME && from.node.label(key) == to.node.label(key)
        })
        && selected.all(|(key, value)| to.node.label(key) == value)
        && untolerated(&to.node.taints(), &shape.tolerations).is_none()
}

impl<'a> Opening<'a> {
    fn of(snapshot: &'a Snapshot, node: &'a StateNode) -> Self {
        let pods = snapshot.placed_on(node);
        let mut spare = snapshot.available(node);
        for pod in &pods {
            spare.sub_assign(&pod.shape.requests);
        }
        let bound = snapshot.bound(node).pods();
        let mut all = pods.iter().copied().chain(bound);
        let is_exclusive = all.any(|it| !it.shape.pod_anti_affinity.is_empty());
        Self {
            node,
            pods,
            spare,
            is_exclusive,
        }
    }

    /// Whether any pod that is equal is planned for it.
    fn holds(&self, shape: &Arc<PodShape>) -> bool {
        self.pods.iter().any(|it| Arc::ptr_eq(&it.shape, shape))
    }

    /// Those that have to wait until one of their kind runs there; the large ones first, which find room the least.
    fn pods_told_late(&self) -> Vec<&'a Arc<Pod>> {
        let mut pods = self.pods.clone();
        pods.sort_by_key(|it| queue_key(it));
        let mut seen = BTreeSet::new();
        pods.retain(|it| spreads_widely(&it.shape) && !seen.insert(Arc::as_ptr(&it.shape)));
        pods.sort_by_key(|it| -size(it));
        pods
    }

    fn gives(&mut self, pod: &Pod) {
        self.pods.retain(|it| it.key != pod.key);
        self.spare.add_assign(&pod.shape.requests);
    }

    fn takes(&mut self, pod: &'a Arc<Pod>) {
        self.pods.push(pod);
        self.spare.sub_assign(&pod.shape.requests);
    }
}
