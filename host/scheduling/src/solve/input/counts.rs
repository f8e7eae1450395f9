//! Where running pods count: the pods of each topology term on every node, worked out once for all solves.
//!
//! A solve that leaves nodes out takes their share off again, so its cost does not grow with the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use locks::lock;

use super::nodes::{PreparedNode, Shapes};
use super::topology::{GroupCounts, HOSTNAME_KEY, Topology, TopologyGroupId, TopologyRule};
use super::vocabulary::Vocabulary;
use crate::pod::{PodShape, Toleration};
use crate::pod_selection::PodSelection;
use crate::problem::ExistingNode;
use crate::requirements::Requirements;
use crate::taints::untolerated;

/// What two groups of different solves must share to count the same pods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    /// Only required anti-affinity counts those that declare it.
    counts_owners: bool,
    key: String,
    selection: PodSelection,
    requirements: Vec<Requirements>,
    tolerations: Option<Vec<Toleration>>,
}

/// The running pods of one term.
#[derive(Debug, Default)]
pub(crate) struct TermCounts {
    /// By position of the node; nodes without any are absent.
    pub(super) by_node: BTreeMap<usize, GroupCounts>,
    /// By value of the key; nodes without the label count nowhere.
    pub(crate) by_value: BTreeMap<String, GroupCounts>,
    /// Selected pods on all nodes.
    pub(crate) selected: i64,
    /// Nodes that the term's filter leaves out.
    pub(crate) uncounted: BTreeSet<usize>,
    /// Nodes whose taints the term tolerates, by value of the key.
    pub(crate) open: BTreeMap<String, u32>,
}

/// Counts that are known already.
#[derive(Debug, Default)]
pub(crate) struct CountCache {
    terms: Mutex<BTreeMap<Term, Arc<TermCounts>>>,
    values: Mutex<BTreeMap<String, Arc<BTreeMap<String, u32>>>>,
}

/// What counts are worked out from.
#[derive(Clone, Copy)]
pub(crate) struct RunningPods<'a> {
    pub(crate) nodes: &'a [PreparedNode],
    pub(super) shapes: &'a Shapes,
    pub(super) namespaces: &'a BTreeMap<String, BTreeMap<String, String>>,
}

impl CountCache {
    /// The counts of a group.
    pub(crate) fn of_group(
        &self,
        id: TopologyGroupId,
        topology: &Topology,
        vocabulary: &Vocabulary,
        running: RunningPods<'_>,
    ) -> Arc<TermCounts> {
        let term = Term::of(id, topology, vocabulary);
        let mut terms = lock(&self.terms);
        if let Some(known) = terms.get(&term) {
            return Arc::clone(known);
        }
        let counted = Arc::new(TermCounts::new(&term, running));
        terms.insert(term, Arc::clone(&counted));
        counted
    }

    /// Nodes by their value of a label.
    pub(crate) fn values(&self, key: &str, nodes: &[PreparedNode]) -> Arc<BTreeMap<String, u32>> {
        let mut values = lock(&self.values);
        if let Some(known) = values.get(key) {
            return Arc::clone(known);
        }
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for value in nodes.iter().filter_map(|it| it.node.labels.get(key)) {
            *counts.entry(value.clone()).or_default() += 1;
        }
        let counts = Arc::new(counts);
        values.insert(key.to_owned(), Arc::clone(&counts));
        counts
    }
}

/// The values that are left when some nodes are removed.
pub(super) fn values_left(
    counts: &BTreeMap<String, u32>,
    removed: impl Iterator<Item = String>,
) -> BTreeSet<String> {
    let mut lost: BTreeMap<String, u32> = BTreeMap::new();
    for value in removed {
        *lost.entry(value).or_default() += 1;
    }
    let is_left = |(value, count): &(&String, &u32)| lost.get(*value).is_none_or(|it| it < *count);
    let left = counts.iter().filter(is_left);
    left.map(|(value, _)| value.clone()).collect()
}

impl Term {
    fn of(id: TopologyGroupId, topology: &Topology, vocabulary: &Vocabulary) -> Self {
        let group = topology.group(id);
        let sets = group.filter.requirements.iter();
        Self {
            counts_owners: group.rule == TopologyRule::AntiAffinity { is_required: true },
            key: topology.label(group.key).to_owned(),
            selection: group.selection.clone(),
            requirements: sets.map(|set| vocabulary.get(*set).clone()).collect(),
            tolerations: group.filter.tolerations.clone(),
        }
    }

    fn selects(&self, shape: &PodShape) -> bool {
        self.selection.selects(&shape.namespace, &shape.labels)
    }

    /// How often a running pod of this shape declares the term.
    fn declared_by(
        &self,
        shape: &PodShape,
        all_namespaces: &BTreeMap<String, BTreeMap<String, String>>,
    ) -> i64 {
        if !self.counts_owners {
            return 0;
        }
        let (own, all) = (&shape.namespace, all_namespaces);
        let terms = shape.pod_anti_affinity.iter().filter(|it| {
            it.topology_key == self.key && self.selection.is_of_affinity(it, own, all)
        });
        i64::try_from(terms.count()).unwrap_or(i64::MAX)
    }

    fn tolerates(&self, node: &ExistingNode) -> bool {
        let tolerations = self.tolerations.as_ref();
        tolerations.is_none_or(|it| untolerated(&node.taints, it).is_none())
    }

    fn leaves_out(&self, node: &ExistingNode) -> bool {
        let is_outside =
            !self.requirements.is_empty() && !self.requirements.iter().any(|it| node.meets_all(it));
        is_outside || !self.tolerates(node)
    }
}

impl TermCounts {
    fn new(term: &Term, running: RunningPods<'_>) -> Self {
        let RunningPods {
            nodes,
            shapes,
            namespaces,
        } = running;
        let by_shape: Vec<(bool, i64)> = shapes
            .all
            .iter()
            .map(|it| (term.selects(it), term.declared_by(it, namespaces)))
            .collect();
        let mut counted = Self::default();
        for (position, prepared) in nodes.iter().enumerate() {
            let node = &prepared.node;
            let is_uncounted = term.leaves_out(node);
            if is_uncounted {
                counted.uncounted.insert(position);
            }
            let value = node.labels.get(&term.key);
            if let (Some(value), Some(_)) = (value, &term.tolerations)
                && term.tolerates(node)
            {
                *counted.open.entry(value.clone()).or_default() += 1;
            }
            let mut count = GroupCounts::default();
            for &(shape, pods) in prepared.pods.iter() {
                let (is_selected, declared) = by_shape[shape];
                count.selected += if is_selected && !is_uncounted {
                    pods
                } else {
                    0
                };
                count.owners += declared * pods;
            }
            if count == GroupCounts::default() {
                continue;
            }
            counted.selected += count.selected;
            counted.by_node.insert(position, count);
            if let Some(value) = value {
                let sum = counted.by_value.entry(value.clone()).or_default();
                sum.selected += count.selected;
                sum.owners += count.owners;
            }
        }
        counted
    }

    /// Adds the counts to a group of a solve, less those of the nodes that are removed.
    pub(super) fn add_to(
        &self,
        topology: &mut Topology,
        id: TopologyGroupId,
        nodes: &[PreparedNode],
        removed: &BTreeSet<usize>,
    ) {
        let key = topology.group(id).key;
        let lost = removed
            .iter()
            .filter_map(|position| Some((*position, *self.by_node.get(position)?)));
        if key == HOSTNAME_KEY {
            let lost: i64 = lost.map(|(_, count)| count.selected).sum();
            topology.count_hosts(id, self.selected - lost);
            return;
        }
        for (value, count) in &self.by_value {
            if let Some(domain) = topology.domain(key, value) {
                topology.count_domain(id, domain, *count);
            }
        }
        let name = topology.label(key).to_owned();
        for (position, count) in lost {
            let value = nodes[position].node.labels.get(&name);
            if let Some(domain) = value.and_then(|it| topology.domain(key, it)) {
                let less = GroupCounts {
                    selected: -count.selected,
                    owners: -count.owners,
                };
                topology.count_domain(id, domain, less);
            }
        }
    }
}
