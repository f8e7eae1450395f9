//! Pods of a plan trade places just before its nodes open, so that as many as can be are told of theirs.
//!
//! Of equal pods that must spread over zones one is told of a node at a time, and the others, told nothing, take room
//! that was meant for somebody else. Where another node of the same zone has none of their kind, one goes there and
//! pods from there come in its place: then all of them are told. Nobody loses a place by it, and no zone a pod.
//! Decides; the shells write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeRef;
use apis::labels::{CAPACITY_TYPE, HOSTNAME, TOPOLOGY_ZONE};
use apis::resources::Resources;
use scheduling::pod::{AffinityTerm, Pod, PodKey};
use state::{Snapshot, StateNode};

use super::{SpreadGroup, are_rivals, may_run, opens_next, spread_group};
use crate::places::placed_on;

/// For so many pods another place is looked for, of any number: each look goes over the nodes of a zone and their pods.
const LOOKS_MAX: usize = 1000;
/// Memory that counts as much as a CPU where sizes of pods are compared, as most machines have it.
const BYTES_PER_CPU: i64 = 4 << 30;

/// A node that is about to open, with what is planned for it.
struct Opening<'a> {
    node: &'a StateNode,
    pods: Vec<&'a Arc<Pod>>,
    /// Room that the plan leaves free.
    spare: Resources,
    /// Terms by which pods there keep others away.
    keeps_away: Vec<&'a AffinityTerm>,
}

/// Which pods get another place, by the node that takes them.
pub fn trades(snapshot: &Snapshot) -> BTreeMap<NodeRef, Vec<PodKey>> {
    let nodes = snapshot.nodes().filter(|node| opens_next(node));
    let mut nodes: Vec<Opening<'_>> = nodes.map(|node| Opening::of(snapshot, node)).collect();
    nodes.sort_by_key(|it| it.node.claim_name());
    let mut moved: BTreeMap<&PodKey, usize> = BTreeMap::new();
    for (from, pod) in waiting_for_turn(&nodes) {
        if !nodes[from].waits_its_turn(pod) {
            continue;
        }
        let trade = (0..nodes.len())
            .filter(|to| *to != from && have_same_domains(nodes[from].node, nodes[*to].node))
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
    by_claim(&nodes, &moved)
}

/// Pods that have to wait until one of their group runs on their node, and the node's number. Those of small groups
/// come first, as the many of a large group may take each other's room without harm, then the large ones, which find
/// room the least.
fn waiting_for_turn<'a>(nodes: &[Opening<'a>]) -> Vec<(usize, &'a Arc<Pod>)> {
    let of_node = |(number, node): (usize, &Opening<'a>)| {
        let pods = node.pods_that_wait().into_iter();
        pods.map(move |pod| (number, pod)).collect::<Vec<_>>()
    };
    let mut waiting: Vec<_> = nodes.iter().enumerate().flat_map(of_node).collect();
    let mut counts: BTreeMap<Option<SpreadGroup<'_>>, usize> = BTreeMap::new();
    for (_, pod) in &waiting {
        *counts.entry(spread_group(pod)).or_default() += 1;
    }
    waiting.sort_by_cached_key(|(number, pod)| {
        let many = counts.get(&spread_group(pod)).copied();
        (many, -weight_millis(pod), pod.queue_key().1, *number)
    });
    waiting.truncate(LOOKS_MAX);
    waiting
}

fn by_claim(
    nodes: &[Opening<'_>],
    moved: &BTreeMap<&PodKey, usize>,
) -> BTreeMap<NodeRef, Vec<PodKey>> {
    let mut places: BTreeMap<NodeRef, Vec<PodKey>> = BTreeMap::new();
    for (pod, to) in moved {
        let claim = nodes.get(*to).and_then(|it| it.node.claim_name());
        if let Some(claim) = claim {
            let pods = places.entry(NodeRef::claim(claim)).or_default();
            pods.push((*pod).clone());
        }
    }
    places
}

/// Pods that come back for the pod, if it can go: none where there is room for it anyway, else as few as there need be.
fn returned<'a>(from: &Opening<'a>, to: &Opening<'a>, pod: &Pod) -> Option<Vec<&'a Arc<Pod>>> {
    if to.holds_rival(pod) || !may_go(pod, from, to) {
        return None;
    }
    let fits = |back: &[&Arc<Pod>]| {
        let mut room = to.spare.clone();
        let mut left = from.spare.clone().add(&pod.shape.requests);
        for other in back {
            room.add_assign(&other.shape.requests);
            left.sub_assign(&other.shape.requests);
        }
        pod.shape.requests.fits(&room) && Resources::new().fits(&left)
    };
    if fits(&[]) {
        return Some(Vec::new());
    }
    let mut others: Vec<&Arc<Pod>> = to.pods.clone();
    let is_new_there = |it: &Pod| spread_group(it).is_none() || !from.holds_rival(it);
    others.retain(|it| is_new_there(it) && may_go(it, to, from));
    others.sort_by_key(|it| (-weight_millis(it), it.queue_key()));
    let sizes = others.iter().map(|it| CpuAndMemory::of(&it.shape.requests));
    let sizes: Vec<CpuAndMemory> = sizes.collect();
    let wanted = CpuAndMemory::of(&pod.shape.requests);
    let window = Window {
        least: wanted.less(CpuAndMemory::of(&to.spare)),
        most: wanted.plus(CpuAndMemory::of(&from.spare)),
    };
    let back = |chosen: &[usize]| {
        let back: Vec<&Arc<Pod>> = chosen.iter().map(|it| others[*it]).collect();
        (!are_rivals(&back) && fits(&back)).then_some(back)
    };
    window.few(&sizes, back)
}

/// CPU and memory, which nearly always decide whether pods fit.
#[derive(Debug, Clone, Copy, Default)]
struct CpuAndMemory {
    cpu_millis: i64,
    memory_bytes: i64,
}

impl CpuAndMemory {
    fn of(resources: &Resources) -> Self {
        Self {
            cpu_millis: resources.cpu_millis(),
            memory_bytes: resources.memory_bytes(),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis + other.cpu_millis,
            memory_bytes: self.memory_bytes + other.memory_bytes,
        }
    }

    fn less(self, other: Self) -> Self {
        Self {
            cpu_millis: self.cpu_millis - other.cpu_millis,
            memory_bytes: self.memory_bytes - other.memory_bytes,
        }
    }
}

/// Bounds on the sum of the pods that come back: they have to make room for the pod, and to have room in its place.
struct Window {
    least: CpuAndMemory,
    most: CpuAndMemory,
}

impl Window {
    fn is_within(&self, sum: CpuAndMemory) -> bool {
        self.fits_below(sum)
            && sum.cpu_millis >= self.least.cpu_millis
            && sum.memory_bytes >= self.least.memory_bytes
    }

    fn fits_below(&self, sum: CpuAndMemory) -> bool {
        sum.cpu_millis <= self.most.cpu_millis && sum.memory_bytes <= self.most.memory_bytes
    }

    /// The first one, two or three whose sum is within, and that will do.
    fn few<T>(&self, sizes: &[CpuAndMemory], will_do: impl Fn(&[usize]) -> Option<T>) -> Option<T> {
        let within = |sum, chosen: &[usize]| self.is_within(sum).then(|| will_do(chosen)).flatten();
        let mut singles = sizes.iter().enumerate();
        if let Some(found) = singles.find_map(|(first, size)| within(*size, &[first])) {
            return Some(found);
        }
        for (first, size) in sizes.iter().enumerate() {
            for second in first + 1..sizes.len() {
                let pair = size.plus(sizes[second]);
                if !self.fits_below(pair) {
                    continue;
                }
                if let Some(found) = within(pair, &[first, second]) {
                    return Some(found);
                }
                let mut thirds = second + 1..sizes.len();
                let found = thirds
                    .find_map(|third| within(pair.plus(sizes[third]), &[first, second, third]));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

/// How large a pod is, as one number: its CPU, and its memory as if it were CPU.
fn weight_millis(pod: &Pod) -> i64 {
    let requests = &pod.shape.requests;
    let memory = requests.memory_bytes() / (BYTES_PER_CPU / 1000);
    requests.cpu_millis().saturating_add(memory)
}

/// Whether nodes are in one zone and of one capacity type: pods spread over little else.
fn have_same_domains(a: &StateNode, b: &StateNode) -> bool {
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
    is_plain
        && !to.may_keep_away(pod)
        && spread.all(|it| {
            let key = &it.topology_key;
            key != HOSTNAME && from.node.label(key) == to.node.label(key)
        })
        && may_run(pod, to.node)
}

impl<'a> Opening<'a> {
    fn of(snapshot: &'a Snapshot, node: &'a StateNode) -> Self {
        let pods = placed_on(snapshot, node);
        let mut spare = snapshot.available(node);
        for pod in &pods {
            spare.sub_assign(&pod.shape.requests);
        }
        let bound = snapshot.bound(node).pods();
        let all = pods.iter().copied().chain(bound);
        let keeps_away = all.flat_map(|it| &it.shape.pod_anti_affinity).collect();
        Self {
            node,
            pods,
            spare,
            keeps_away,
        }
    }

    /// Whether a pod there may keep this one away: namespaces are not asked for, so that where it takes more to tell,
    /// it does.
    fn may_keep_away(&self, pod: &Pod) -> bool {
        let mut selectors = self.keeps_away.iter().filter_map(|it| it.selector.as_ref());
        selectors.any(|it| it.matches(&pod.shape.labels))
    }

    /// Whether any pod of its group is planned for it.
    fn holds_rival(&self, pod: &Pod) -> bool {
        let group = spread_group(pod);
        group.is_some() && self.pods.iter().any(|it| spread_group(it) == group)
    }

    /// Whether the pod is still planned for it, with others of its group, so that they are told one at a time.
    fn waits_its_turn(&self, pod: &Pod) -> bool {
        let group = spread_group(pod);
        let of_group = self.pods.iter().filter(|it| spread_group(it) == group);
        of_group.count() > 1 && self.pods.iter().any(|it| it.key == pod.key)
    }

    /// All pods of each group but the first, which is told at once.
    fn pods_that_wait(&self) -> Vec<&'a Arc<Pod>> {
        let mut pods = self.pods.clone();
        pods.sort_by_key(|it| it.queue_key());
        let mut seen = BTreeSet::new();
        pods.retain(|it| spread_group(it).is_some_and(|group| !seen.insert(group)));
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
