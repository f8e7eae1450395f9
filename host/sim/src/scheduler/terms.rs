//! What placing a pod depends on other pods for: topology spread and pod (anti-)affinity.
//!
//! Counts per domain are taken once for a group of equal pods and kept up as the group is placed.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodAffinityTerm, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::filter::{FilterFailure, matches_node, static_rejection};
use crate::cluster::SimulatedCluster;
use crate::cluster::node::NodeRecord;
use crate::cluster::shape::SchedulingShape;
use crate::cluster::shape::selects;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TermRule {
    /// Required spread: (max skew, min domains).
    Spread(i64, i64),
    /// Spread that only scores.
    SpreadSoftly,
    Affinity,
    AntiAffinity,
}

/// One term of the shape, with the pods that it selects counted by domain.
#[derive(Debug)]
struct TermState {
    rule: TermRule,
    topology_key: String,
    counts: BTreeMap<String, i64>,
    /// The smallest and the largest count, 0 without any.
    least: i64,
    most: i64,
    /// The shape selects itself, so each placed pod counts.
    selects_self: bool,
    /// Shapes it selects among those of pods that are nominated.
    nominated: BTreeSet<usize>,
}

/// All terms of a shape, and where pods that run already keep it away.
#[derive(Debug, Default)]
pub(super) struct TermStates {
    terms: Vec<TermState>,
    /// Domains, by topology key, that existing pods' anti-affinity forbids.
    forbidden: BTreeMap<String, BTreeSet<String>>,
}

impl TermStates {
    pub(super) fn new(cluster: &SimulatedCluster, shape: &SchedulingShape) -> Self {
        let mut states = Self {
            terms: Vec::new(),
            forbidden: forbidden(cluster, shape),
        };
        for constraint in &shape.spread {
            states.terms.push(spread(cluster, shape, constraint));
        }
        for term in &shape.affinity {
            states
                .terms
                .push(affinity(cluster, shape, term, TermRule::Affinity));
        }
        for term in &shape.anti_affinity {
            states
                .terms
                .push(affinity(cluster, shape, term, TermRule::AntiAffinity));
        }
        states
    }

    pub(super) fn rejection(&self, node: &NodeRecord) -> Option<FilterFailure<'static>> {
        for (key, domains) in &self.forbidden {
            let domain = node.labels.get(key);
            if domain.is_some_and(|domain| domains.contains(domain)) {
                return Some(FilterFailure::ExistingAntiAffinity);
            }
        }
        self.terms.iter().find_map(|term| term.rejection(node))
    }

    /// Whether the shape could not be on the node if the others were there, which are nominated to it.
    pub(super) fn is_kept_off_by(
        &self,
        others: &[&SchedulingShape],
        shape: &SchedulingShape,
        node: &NodeRecord,
    ) -> bool {
        let repels = |other: &&SchedulingShape| {
            let mut terms = other.anti_affinity.iter();
            terms.any(|term| {
                node.labels.contains_key(&term.topology_key)
                    && covers(term, &other.namespace, shape)
            })
        };
        let mut terms = self.terms.iter();
        others.iter().any(repels) || terms.any(|term| term.rejects_beside(others, node))
    }

    /// Softly spread pods prefer domains with fewer of them.
    pub(super) fn score(&self, node: &NodeRecord) -> i64 {
        let soft = self
            .terms
            .iter()
            .filter(|term| matches!(term.rule, TermRule::SpreadSoftly | TermRule::Spread(..)));
        soft.map(|term| {
            let most = term.most.max(1);
            2 * 100 * (most - term.count_at(node).unwrap_or_default()) / most
        })
        .sum()
    }

    /// A pod of the shape was placed on a node.
    pub(super) fn place(&mut self, node: &NodeRecord) {
        for term in self.terms.iter_mut().filter(|term| term.selects_self) {
            if let Some(domain) = node.labels.get(&term.topology_key) {
                *term.counts.entry(domain.clone()).or_default() += 1;
                term.measure();
            }
        }
    }
}

impl TermState {
    fn new(
        rule: TermRule,
        topology_key: &str,
        counts: BTreeMap<String, i64>,
        selects_self: bool,
    ) -> Self {
        let mut term = Self {
            rule,
            topology_key: topology_key.to_owned(),
            counts,
            least: 0,
            most: 0,
            selects_self,
            nominated: BTreeSet::new(),
        };
        term.measure();
        term
    }

    fn with_nominated(
        mut self,
        cluster: &SimulatedCluster,
        is: impl Fn(&SchedulingShape) -> bool,
    ) -> Self {
        let mut shapes: BTreeMap<usize, &SchedulingShape> = BTreeMap::new();
        for shape in cluster.nominated.values().flat_map(BTreeMap::values) {
            shapes.insert(shape.id, shape);
        }
        let selected = shapes.into_iter().filter(|(_, shape)| is(shape));
        self.nominated = selected.map(|(id, _)| id).collect();
        self
    }

    fn measure(&mut self) {
        self.least = self.counts.values().copied().min().unwrap_or_default();
        self.most = self.counts.values().copied().max().unwrap_or_default();
    }

    fn count_at(&self, node: &NodeRecord) -> Option<i64> {
        let domain = node.labels.get(&self.topology_key)?;
        self.counts.get(domain).copied()
    }

    fn rejection(&self, node: &NodeRecord) -> Option<FilterFailure<'static>> {
        let domain = node.labels.get(&self.topology_key);
        let here = self.count_at(node).unwrap_or_default();
        match self.rule {
            TermRule::SpreadSoftly => None,
            TermRule::Spread(..) if domain.is_none() => Some(FilterFailure::SpreadMissingLabel),
            TermRule::Spread(max_skew, min_domains) => {
                let least = self.least_of(min_domains, self.least);
                let own = i64::from(self.selects_self);
                (here + own - least > max_skew).then_some(FilterFailure::Spread)
            }
            TermRule::Affinity => {
                // The first of a group that asks for its own company may start it anywhere.
                let starts = self.selects_self && self.most == 0;
                (domain.is_none() || (here == 0 && !starts)).then_some(FilterFailure::PodAffinity)
            }
            TermRule::AntiAffinity => (here > 0).then_some(FilterFailure::PodAntiAffinity),
        }
    }

    /// Whether it would turn down the node with the others on it. Affinity never does that it did not before.
    fn rejects_beside(&self, others: &[&SchedulingShape], node: &NodeRecord) -> bool {
        let selected = others.iter().filter(|it| self.nominated.contains(&it.id));
        let more = i64::try_from(selected.count()).unwrap_or(i64::MAX);
        let Some(domain) = node.labels.get(&self.topology_key).filter(|_| more > 0) else {
            return false;
        };
        match self.rule {
            TermRule::SpreadSoftly | TermRule::Affinity => false,
            TermRule::AntiAffinity => true,
            TermRule::Spread(max_skew, min_domains) => {
                let here = self.counts.get(domain).copied().unwrap_or_default() + more;
                let elsewhere = self.counts.iter().filter(|(other, _)| *other != domain);
                let least = elsewhere.map(|(_, count)| *count).min();
                let least = self.least_of(min_domains, least.map_or(here, |it| it.min(here)));
                here + i64::from(self.selects_self) - least > max_skew
            }
        }
    }

    /// What a spread measures from: nothing while there are fewer domains than it asks for.
    fn least_of(&self, min_domains: i64, least: i64) -> i64 {
        let domains = i64::try_from(self.counts.len()).unwrap_or(i64::MAX);
        if domains < min_domains { 0 } else { least }
    }
}

fn spread(
    cluster: &SimulatedCluster,
    shape: &SchedulingShape,
    constraint: &TopologySpreadConstraint,
) -> TermState {
    let mut selector = constraint.label_selector.clone().unwrap_or_default();
    // matchLabelKeys narrow the selector to the pod's own values.
    for key in constraint.match_label_keys.iter().flatten() {
        if let Some(value) = shape.labels.get(key) {
            selector
                .match_labels
                .get_or_insert_default()
                .insert(key.clone(), value.clone());
        }
    }
    let key = &constraint.topology_key;
    let honors_affinity = constraint.node_affinity_policy.as_deref() != Some("Ignore");
    let honors_taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    let counts_node = |node: &NodeRecord| {
        (!honors_affinity || matches_node(shape, node))
            && (!honors_taints || static_rejection(shape, node).is_none())
    };
    // A domain without pods counts too.
    let mut counts = BTreeMap::new();
    for node in cluster.nodes.values() {
        if let Some(domain) = node.labels.get(key)
            && !counts.contains_key(domain)
            && counts_node(node)
        {
            counts.insert(domain.clone(), 0);
        }
    }
    let is_selected = |other: &SchedulingShape| {
        other.namespace == shape.namespace && selects(Some(&selector), &other.labels)
    };
    for (node, count) in pods_selected(cluster, is_selected) {
        if let Some(domain) = node.labels.get(key).filter(|_| counts_node(node)) {
            *counts.entry(domain.clone()).or_default() += count;
        }
    }
    let min_domains = i64::from(constraint.min_domains.unwrap_or(1));
    let rule = if constraint.when_unsatisfiable == "ScheduleAnyway" {
        TermRule::SpreadSoftly
    } else {
        TermRule::Spread(i64::from(constraint.max_skew), min_domains)
    };
    let term = TermState::new(rule, key, counts, is_selected(shape));
    term.with_nominated(cluster, is_selected)
}

fn affinity(
    cluster: &SimulatedCluster,
    shape: &SchedulingShape,
    term: &PodAffinityTerm,
    rule: TermRule,
) -> TermState {
    let covers = |other: &SchedulingShape| covers(term, &shape.namespace, other);
    let mut counts = BTreeMap::new();
    for (node, count) in pods_selected(cluster, covers) {
        if let Some(domain) = node.labels.get(&term.topology_key) {
            *counts.entry(domain.clone()).or_default() += count;
        }
    }
    let state = TermState::new(rule, &term.topology_key, counts, covers(shape));
    state.with_nominated(cluster, covers)
}

/// Nodes with how many pods on them a rule is about: each shape is asked once, whatever the number of its pods.
fn pods_selected<'a>(
    cluster: &'a SimulatedCluster,
    is: impl Fn(&SchedulingShape) -> bool + 'a,
) -> impl Iterator<Item = (&'a NodeRecord, i64)> {
    let shapes = cluster.census.shapes().filter(move |(shape, _)| is(shape));
    let places = shapes.flat_map(|(_, nodes)| nodes);
    places.filter_map(|(name, count)| Some((cluster.nodes.get(name)?, *count)))
}

fn covers(term: &PodAffinityTerm, own_namespace: &str, other: &SchedulingShape) -> bool {
    let listed = term
        .namespaces
        .iter()
        .flatten()
        .any(|name| *name == other.namespace);
    // Labels of namespaces are not kept: a namespace selector is taken to select every namespace.
    let own = term.namespaces.iter().flatten().next().is_none() && own_namespace == other.namespace;
    let selector: Option<&LabelSelector> = term.label_selector.as_ref();
    (listed || own || term.namespace_selector.is_some()) && selects(selector, &other.labels)
}

/// Domains, by topology key, from which the anti-affinity of pods that run keeps the shape away.
fn forbidden(
    cluster: &SimulatedCluster,
    shape: &SchedulingShape,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut forbidden: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for pod in cluster
        .anti_affine
        .iter()
        .filter_map(|key| cluster.pods.get(key))
    {
        let Some(node) = pod.place().and_then(|node| cluster.nodes.get(node)) else {
            continue;
        };
        for term in &pod.shape.anti_affinity {
            if let Some(domain) = node.labels.get(&term.topology_key)
                && covers(term, &pod.shape.namespace, shape)
            {
                let domains = forbidden.entry(term.topology_key.clone()).or_default();
                domains.insert(domain.clone());
            }
        }
    }
    forbidden
}
