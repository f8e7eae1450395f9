//! What placing a pod depends on other pods for: topology spread and pod (anti-)affinity.
//!
//! Counts per domain are taken once for a group of equal pods and kept up as the group is placed.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodAffinityTerm, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::filter::{Rejection, matches_node};
use crate::cluster::shape::selects;
use crate::cluster::{Cluster, NodeRecord, PodShape};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
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
    rule: Rule,
    topology_key: String,
    counts: BTreeMap<String, i64>,
    /// The shape selects itself, so each placed pod counts.
    selects_self: bool,
}

/// All terms of a shape, and where pods that run already keep it away.
#[derive(Debug, Default)]
pub(super) struct TermStates {
    terms: Vec<TermState>,
    /// (topology key, domain) that existing pods' anti-affinity forbids.
    forbidden: BTreeSet<(String, String)>,
}

impl TermStates {
    pub(super) fn new(cluster: &Cluster, shape: &PodShape, candidates: &BTreeSet<String>) -> Self {
        let mut states = Self {
            terms: Vec::new(),
            forbidden: forbidden(cluster, shape),
        };
        for constraint in &shape.spread {
            states
                .terms
                .push(spread(cluster, shape, constraint, candidates));
        }
        for term in &shape.affinity {
            states
                .terms
                .push(affinity(cluster, shape, term, Rule::Affinity));
        }
        for term in &shape.anti_affinity {
            states
                .terms
                .push(affinity(cluster, shape, term, Rule::AntiAffinity));
        }
        states
    }

    pub(super) fn rejection(&self, node: &NodeRecord) -> Option<String> {
        for (key, domain) in &self.forbidden {
            if node.labels.get(key) == Some(domain) {
                return Some(Rejection::ExistingAntiAffinity.to_string());
            }
        }
        self.terms
            .iter()
            .find_map(|term| term.rejection(node))
            .map(|reason| reason.to_string())
    }

    /// Softly spread pods prefer domains with fewer of them.
    pub(super) fn score(&self, node: &NodeRecord) -> i64 {
        let soft = self
            .terms
            .iter()
            .filter(|term| matches!(term.rule, Rule::SpreadSoftly | Rule::Spread(..)));
        soft.map(|term| {
            let most = term
                .counts
                .values()
                .copied()
                .max()
                .unwrap_or_default()
                .max(1);
            let here = node
                .labels
                .get(&term.topology_key)
                .and_then(|domain| term.counts.get(domain));
            2 * 100 * (most - here.copied().unwrap_or_default()) / most
        })
        .sum()
    }

    /// A pod of the shape was placed on a node.
    pub(super) fn placed(&mut self, cluster: &Cluster, node: &str) {
        let Some(node) = cluster.nodes.get(node) else {
            return;
        };
        for term in self.terms.iter_mut().filter(|term| term.selects_self) {
            if let Some(domain) = node.labels.get(&term.topology_key) {
                *term.counts.entry(domain.clone()).or_default() += 1;
            }
        }
    }
}

impl TermState {
    fn rejection(&self, node: &NodeRecord) -> Option<Rejection> {
        let domain = node.labels.get(&self.topology_key);
        let here = domain
            .and_then(|domain| self.counts.get(domain))
            .copied()
            .unwrap_or_default();
        match self.rule {
            Rule::SpreadSoftly => None,
            Rule::Spread(..) if domain.is_none() => Some(Rejection::SpreadMissingLabel),
            Rule::Spread(max_skew, min_domains) => {
                let domains = i64::try_from(self.counts.len()).unwrap_or(i64::MAX);
                let least = if domains < min_domains {
                    0
                } else {
                    self.counts.values().copied().min().unwrap_or_default()
                };
                let own = i64::from(self.selects_self);
                (here + own - least > max_skew).then_some(Rejection::Spread)
            }
            Rule::Affinity => {
                // The first of a group that asks for its own company may start it anywhere.
                let starts = self.selects_self && self.counts.values().all(|count| *count == 0);
                (domain.is_none() || (here == 0 && !starts)).then_some(Rejection::PodAffinity)
            }
            Rule::AntiAffinity => (here > 0).then_some(Rejection::PodAntiAffinity),
        }
    }
}

fn spread(
    cluster: &Cluster,
    shape: &PodShape,
    constraint: &TopologySpreadConstraint,
    candidates: &BTreeSet<String>,
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
            && (!honors_taints || candidates.contains(&node.name))
    };
    let mut counts = BTreeMap::new();
    for node in cluster.nodes.values().filter(|node| counts_node(node)) {
        if let Some(domain) = node.labels.get(key) {
            *counts.entry(domain.clone()).or_default() += selected(cluster, node, |other| {
                other.namespace == shape.namespace && selects(Some(&selector), &other.labels)
            });
        }
    }
    let min_domains = i64::from(constraint.min_domains.unwrap_or(1));
    TermState {
        rule: if constraint.when_unsatisfiable == "ScheduleAnyway" {
            Rule::SpreadSoftly
        } else {
            Rule::Spread(i64::from(constraint.max_skew), min_domains)
        },
        topology_key: key.clone(),
        counts,
        selects_self: selects(Some(&selector), &shape.labels),
    }
}

fn affinity(cluster: &Cluster, shape: &PodShape, term: &PodAffinityTerm, rule: Rule) -> TermState {
    let covers = |other: &PodShape| covers(term, &shape.namespace, other);
    let mut counts = BTreeMap::new();
    for node in cluster.nodes.values() {
        let Some(domain) = node.labels.get(&term.topology_key) else {
            continue;
        };
        let count = selected(cluster, node, covers);
        if count > 0 {
            *counts.entry(domain.clone()).or_default() += count;
        }
    }
    TermState {
        rule,
        topology_key: term.topology_key.clone(),
        counts,
        selects_self: covers(shape),
    }
}

/// Pods on a node that a rule is about.
fn selected(cluster: &Cluster, node: &NodeRecord, is: impl Fn(&PodShape) -> bool) -> i64 {
    let pods = node.pods.iter().filter_map(|key| cluster.pods.get(key));
    let count = pods
        .filter(|pod| !pod.is_deleting() && is(&pod.shape))
        .count();
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn covers(term: &PodAffinityTerm, own_namespace: &str, other: &PodShape) -> bool {
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

/// Domains from which the anti-affinity of pods that run keeps the shape away.
fn forbidden(cluster: &Cluster, shape: &PodShape) -> BTreeSet<(String, String)> {
    let mut forbidden = BTreeSet::new();
    for pod in cluster
        .anti_affine
        .iter()
        .filter_map(|key| cluster.pods.get(key))
    {
        let Some(node) = pod.node.as_ref().and_then(|node| cluster.nodes.get(node)) else {
            continue;
        };
        for term in &pod.shape.anti_affinity {
            if let Some(domain) = node.labels.get(&term.topology_key)
                && covers(term, &pod.shape.namespace, shape)
            {
                forbidden.insert((term.topology_key.clone(), domain.clone()));
            }
        }
    }
    forbidden
}
