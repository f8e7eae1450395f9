//! What pods of the play have in common: equal pods are one kind, and kinds share the nodes that they may use and the
//! terms that look at them.
//!
//! Knows nothing of where pods are; [`super::counters`] does.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use k8s_openapi::api::core::v1::Taint;

use super::scores::{CPU_UNASKED_MILLIS, MEMORY_UNASKED_BYTES};
use crate::existing_node::ExistingNode;
use crate::pod::{HostPort, Pod, PodShape, Toleration, Weighted};
use crate::problem::{DaemonPod, PodVolumes, Problem};
use crate::requirements::{AllowUndefined, Requirement, Requirements};
use crate::taints;

/// Resources by number: those that any pod asks for, and those that are scored.
#[derive(Debug, Clone)]
pub(super) struct Columns(Vec<String>);

impl Columns {
    pub(super) fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names.dedup();
        Self(names)
    }

    pub(super) fn amounts(&self, resources: &Resources) -> Vec<i64> {
        self.0.iter().map(|name| resources.get(name)).collect()
    }

    pub(super) fn of(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|it| it == name)
    }
}

/// Demand on the node alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeDemand {
    selector: Requirements,
    /// Alternatives, each a conjunction; none means that anything goes.
    alternatives: Vec<Vec<Requirement>>,
    preferred: Vec<Weighted<Vec<Requirement>>>,
    tolerations: Vec<Toleration>,
    volumes: Vec<Requirements>,
}

/// Demand of a DaemonSet on each node that it has a pod on.
#[derive(Debug)]
pub(super) struct DaemonDemand<'a> {
    demand: NodeDemand,
    requests: &'a Resources,
}

/// Number of a kind, and its place in the columns that tell something of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlayKindId(usize);

/// Pods that are equal for the play.
#[derive(Debug)]
pub(super) struct PlayKind {
    pub(super) shape: Arc<PodShape>,
    /// Number of its [`NodeDemand`].
    pub(super) demand: usize,
    pub(super) requests: Vec<i64>,
    /// What it counts for, beyond its requests, where nodes are scored, by column.
    pub(super) unasked: Vec<i64>,
}

/// All kinds of a play.
#[derive(Debug)]
pub(super) struct PlayKinds {
    pub(super) columns: Columns,
    pub(super) all: Vec<PlayKind>,
    pub(super) demands: Vec<NodeDemand>,
    by_shape: BTreeMap<(usize, Option<PodVolumes>), PlayKindId>,
    by_demand: BTreeMap<NodeDemand, usize>,
}

impl PlayKindId {
    /// Of so many kinds.
    pub(super) fn all(kinds: usize) -> impl Iterator<Item = Self> {
        (0..kinds).map(Self)
    }
}

impl<T> Index<PlayKindId> for Vec<T> {
    type Output = T;

    fn index(&self, id: PlayKindId) -> &T {
        &self[id.0]
    }
}

impl<T> IndexMut<PlayKindId> for Vec<T> {
    fn index_mut(&mut self, id: PlayKindId) -> &mut T {
        &mut self[id.0]
    }
}

impl PlayKinds {
    pub(super) fn new(columns: Columns) -> Self {
        Self {
            columns,
            all: Vec::new(),
            demands: Vec::new(),
            by_shape: BTreeMap::new(),
            by_demand: BTreeMap::new(),
        }
    }

    /// The kind of a pod. `problem` keeps the shape, whose address tells it from others.
    pub(super) fn of(&mut self, pod: &Pod, problem: &Problem) -> PlayKindId {
        let volumes = problem.volumes.get(&pod.key);
        let known = (Arc::as_ptr(&pod.shape).addr(), volumes.cloned());
        if let Some(kind) = self.by_shape.get(&known) {
            return *kind;
        }
        let demand = NodeDemand::of(&pod.shape, volumes);
        let next = self.demands.len();
        let number = *self.by_demand.entry(demand.clone()).or_insert(next);
        if number == next {
            self.demands.push(demand);
        }
        let requests = self.columns.amounts(&pod.shape.requests);
        let kind = PlayKindId(self.all.len());
        self.all.push(PlayKind {
            demand: number,
            unasked: unasked(&self.columns, &requests),
            requests,
            shape: Arc::clone(&pod.shape),
        });
        self.by_shape.insert(known, kind);
        kind
    }
}

/// What a pod of these requests counts for beyond them.
pub(super) fn unasked(columns: &Columns, requests: &[i64]) -> Vec<i64> {
    let mut unasked = vec![0; requests.len()];
    for (name, amount) in [
        (labels::RESOURCE_CPU, CPU_UNASKED_MILLIS),
        (labels::RESOURCE_MEMORY, MEMORY_UNASKED_BYTES * 1000),
    ] {
        if let Some(at) = columns.of(name).filter(|at| requests[*at] == 0) {
            unasked[at] = amount;
        }
    }
    unasked
}

impl<'a> DaemonDemand<'a> {
    /// Of all DaemonSets; who claims devices is not known here.
    pub(super) fn all(daemons: &'a [DaemonPod]) -> Vec<Self> {
        let shapes = daemons.iter().map(|it| &it.shape);
        let known = shapes.filter(|shape| !shape.uses_resource_claims);
        let demands = known.map(|shape| Self {
            demand: NodeDemand::of(shape, None),
            requests: &shape.requests,
        });
        demands.collect()
    }

    /// What DaemonSets may still claim of a node.
    fn outstanding(all: &[Self], node: &ExistingNode) -> Resources {
        let on_node = all.iter().filter(|it| it.demand.admits(node));
        let sum: Resources = on_node.map(|it| it.requests).sum();
        let left = sum.iter().map(|(name, amount)| {
            let there = node.daemon_requests.get(name);
            (name, amount.saturating_sub(there).max(0))
        });
        left.collect()
    }

    /// What pods and DaemonSets leave of a node, by column.
    pub(super) fn free(all: &[Self], node: &ExistingNode, columns: &Columns) -> Vec<i64> {
        let mut free = columns.amounts(&node.allocatable);
        for taken in [&node.requests, &Self::outstanding(all, node)] {
            subtract(&mut free, &columns.amounts(taken));
        }
        free
    }
}

/// Takes amounts off others, column by column.
pub(super) fn subtract(from: &mut [i64], less: &[i64]) {
    from.iter_mut().zip(less).for_each(|(rest, it)| *rest -= it);
}

impl NodeDemand {
    fn of(shape: &PodShape, volumes: Option<&PodVolumes>) -> Self {
        Self {
            selector: Requirements::from_labels(&shape.node_selector),
            alternatives: shape.required_node_affinity.clone(),
            preferred: shape.preferred_node_affinity.clone(),
            tolerations: shape.tolerations.clone(),
            volumes: volumes.map_or_else(Vec::new, |it| it.alternatives.clone()),
        }
    }

    /// Whether the node is one of those that selector and affinity mean.
    pub(super) fn selects(&self, node: &ExistingNode) -> bool {
        let meets_all = |terms: &Vec<Requirement>| terms.iter().all(|it| node.meets(it));
        self.selector.iter().all(|it| node.meets(it))
            && (self.alternatives.is_empty() || self.alternatives.iter().any(meets_all))
    }

    /// Whether its taints let the pod in.
    pub(super) fn tolerates(&self, node: &ExistingNode) -> bool {
        let mut hard = node.taints.iter().filter(|it| !taints::is_preference(it));
        hard.all(|taint| self.is_tolerated(taint))
    }

    fn is_tolerated(&self, taint: &Taint) -> bool {
        let mut tolerations = self.tolerations.iter();
        tolerations.any(|it| taints::tolerates(it, taint))
    }

    pub(super) fn admits(&self, node: &ExistingNode) -> bool {
        let meets_all = |terms: &Requirements| terms.iter().all(|it| node.meets(it));
        self.selects(node)
            && self.tolerates(node)
            && (self.volumes.is_empty() || self.volumes.iter().any(meets_all))
    }

    /// The weights of preferred terms that the node meets.
    pub(super) fn preference(&self, node: &ExistingNode) -> i64 {
        let met = |it: &&Weighted<Vec<Requirement>>| it.value.iter().all(|it| node.meets(it));
        let met = self.preferred.iter().filter(met);
        met.map(|it| i64::from(it.weight)).sum()
    }

    /// Taints that would rather keep the pod away.
    pub(super) fn shuns(&self, node: &ExistingNode) -> i64 {
        let soft = node.taints.iter().filter(|it| taints::is_preference(it));
        let unwanted = soft.filter(|it| !self.is_tolerated(it));
        i64::try_from(unwanted.count()).unwrap_or(i64::MAX)
    }
}

/// Whether nodes of these requirements can be what selector and affinity mean.
pub(super) fn may_run_on(shape: &PodShape, requirements: &Requirements) -> bool {
    let meets_all =
        |terms: &Requirements| requirements.is_compatible(terms, AllowUndefined::WellKnown);
    let mut alternatives = shape.required_node_affinity.iter();
    meets_all(&Requirements::from_labels(&shape.node_selector))
        && (shape.required_node_affinity.is_empty()
            || alternatives.any(|terms| meets_all(&terms.iter().cloned().collect())))
}

/// Whether ports of a pod are free beside others.
pub(super) fn are_free(ports: &[HostPort], taken: &[HostPort]) -> bool {
    let is_taken = |port: &HostPort| taken.iter().any(|other| other.conflicts_with(port));
    !ports.iter().any(is_taken)
}
