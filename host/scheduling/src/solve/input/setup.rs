//! From the problem to the solver's state: interned requirements, tables of rows, topology counts.
//!
//! What does not change from solve to solve comes prepared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::counts::{RunningPods, TermCounts, values_left};
use super::nodes::Nodes;
use super::pod_groups::Grouper;
use super::pool_table::PoolTable;
use super::prepared::Prepared;
use super::topology::{HOSTNAME_KEY, KeyId, NodePlace, Topology, TopologyGroupId, TopologyRule};
use super::unit_price::Usable;
use super::views::has_preference_taint;
use super::vocabulary::Vocabulary;
use crate::device::Allocator;
use crate::error::PodError;
use crate::problem::Problem;
use crate::solve::solver::{DeferredDomains, Solver};
use crate::taints::untolerated;
use k8s_openapi::api::core::v1::Taint;

impl<'a> Solver<'a> {
    pub(crate) fn new(
        problem: &'a Problem,
        prepared: &'a Prepared,
        removed: &'a BTreeSet<usize>,
        deferred: DeferredDomains,
    ) -> Self {
        let mut refused = BTreeMap::new();
        let mut pods = Vec::with_capacity(problem.pods.len());
        for (index, pod) in problem.pods.iter().enumerate() {
            let volume_error = problem
                .volumes
                .get(&pod.key)
                .and_then(|volumes| volumes.error.clone());
            let claimed = problem.devices.as_ref().map(|it| it.pods.get(&pod.key));
            if pod.shape.uses_resource_claims && claimed.is_none() {
                refused.insert(index, PodError::ResourceClaims);
            } else if let Some(error) = claimed.flatten().and_then(|it| it.error.clone()) {
                refused.insert(index, PodError::Devices(error));
            } else if let Some(error) = volume_error {
                refused.insert(index, PodError::Volumes(error));
            } else {
                pods.push(index);
            }
        }
        let dims = prepared.dims.clone();
        let mut vocabulary = Vocabulary::new();
        let mut topology = Topology::new();
        let has_preference_taints = problem
            .pools
            .iter()
            .any(|p| has_preference_taint(&p.node_pool.spec.template.spec.taints))
            || !prepared.with_preference_taints.is_subset(removed);
        for shape in &prepared.repelling {
            register_terms(problem, shape, &mut topology);
        }
        let grouper = Grouper {
            problem,
            vocabulary: &mut vocabulary,
            topology: &mut topology,
            dims: &dims,
            has_preference_taints,
        };
        let groups = grouper.group(&pods);
        let mut usable = Usable::default();
        for group in &groups {
            usable.add(&group.requests, group.members.len());
        }
        let pools = pool_tables(problem, prepared, &mut vocabulary);
        set_domains(prepared, removed, &mut topology);
        let term_counts = count(problem, prepared, removed, &mut topology, &vocabulary);
        Self {
            reachable: reachable(problem, prepared, removed, &topology, &term_counts),
            problem,
            vocabulary,
            dims,
            topology,
            pools,
            groups,
            nodes: Nodes::new(&prepared.nodes, &prepared.block_maxima, removed),
            term_counts,
            devices: devices(problem, prepared, removed),
            claims: Vec::new(),
            placed: 0,
            usable,
            unit_prices: BTreeMap::new(),
            domain_caps: BTreeMap::new(),
            feasible_domains: BTreeMap::new(),
            refused,
            deferred,
            closed_domains: BTreeSet::new(),
            failed_domains: BTreeSet::new(),
        }
    }

    /// Where a node is before any pod is added to it.
    pub(crate) fn place_of_node(&self, index: usize) -> NodePlace {
        let node = self.nodes.node(index);
        let domain = |key: KeyId| {
            let name = self.topology.label(key);
            let value = (key != HOSTNAME_KEY).then(|| node.labels.get(name));
            self.topology.domain(key, value.flatten()?)
        };
        let mut place = NodePlace {
            domains: self.topology.keys().map(domain).collect(),
            ..NodePlace::default()
        };
        for (id, term_counts) in self.topology.ids().zip(&self.term_counts) {
            if term_counts.uncounted.contains(&index) {
                place.uncounted.push(id);
            }
            if self.topology.group(id).key == HOSTNAME_KEY
                && let Some(counts) = term_counts.by_node.get(&index)
            {
                place.host(id, *counts);
            }
        }
        place
    }
}

/// The devices without those that pods keeping a place will get.
fn devices<'a>(
    problem: &'a Problem,
    prepared: &Prepared,
    removed: &BTreeSet<usize>,
) -> Option<Allocator<'a>> {
    let mut devices = Allocator::new(problem.devices.as_deref()?);
    let nodes = prepared.nodes.iter().enumerate();
    for (_, it) in nodes.filter(|(at, it)| it.awaits_pods && !removed.contains(at)) {
        devices.give_to_waiting(&it.node);
    }
    Some(devices)
}

/// Counts the pods that already run.
fn count(
    problem: &Problem,
    prepared: &Prepared,
    removed: &BTreeSet<usize>,
    topology: &mut Topology,
    vocabulary: &Vocabulary,
) -> Vec<Arc<TermCounts>> {
    let running = RunningPods {
        nodes: &prepared.nodes,
        shapes: &prepared.shapes,
        namespaces: &problem.namespaces,
    };
    topology
        .ids()
        .map(|id| {
            let term_counts = prepared.counts.of_group(id, topology, vocabulary, running);
            term_counts.add_to(topology, id, &prepared.nodes, removed);
            term_counts
        })
        .collect()
}

/// Required anti-affinity terms of running pods keep pending ones out, so they need groups too.
fn register_terms(problem: &Problem, shape: &crate::pod::PodShape, topology: &mut Topology) {
    for term in &shape.pod_anti_affinity {
        let rule = TopologyRule::AntiAffinity { is_required: true };
        topology.affinity(rule, term, &shape.namespace, &problem.namespaces);
    }
}

/// The domains of every key: what pools could offer, available now or not, and what nodes have.
fn set_domains(prepared: &Prepared, removed: &BTreeSet<usize>, topology: &mut Topology) {
    for key in topology.keys().filter(|key| *key != HOSTNAME_KEY) {
        let name = topology.label(key).to_owned();
        let counts = prepared.counts.values(&name, &prepared.nodes);
        let lost = removed.iter().filter_map(|it| prepared.nodes.get(*it));
        let lost = lost.filter_map(|it| it.node.labels.get(&name).cloned());
        let mut values = values_left(&counts, lost);
        for admission in prepared.admissions.values() {
            values.extend(admission.domains(&name).iter().cloned());
        }
        topology.set_domains(key, values);
    }
}

/// For each spread that honours taints, which domains a tolerated pool or node has.
fn reachable(
    problem: &Problem,
    prepared: &Prepared,
    removed: &BTreeSet<usize>,
    topology: &Topology,
    term_counts: &[Arc<TermCounts>],
) -> BTreeMap<TopologyGroupId, Vec<bool>> {
    let mut reachable = BTreeMap::new();
    for (id, term_counts) in topology.ids().zip(term_counts) {
        let group = topology.group(id);
        let Some(tolerations) = &group.filter.tolerations else {
            continue;
        };
        let key = topology.label(group.key);
        let is_open = |all: &[Taint]| untolerated(all, tolerations).is_none();
        let lost = removed.iter().filter_map(|it| prepared.nodes.get(*it));
        let lost = lost.filter(|it| is_open(&it.node.taints));
        let lost = lost.filter_map(|it| it.node.labels.get(key).cloned());
        let mut values = values_left(&term_counts.open, lost);
        for pool in &problem.pools {
            let name = pool.node_pool.metadata.name.as_deref().unwrap_or("");
            if is_open(&pool.node_pool.spec.template.spec.taints)
                && let Some(admission) = prepared.admissions.get(name)
            {
                values.extend(admission.domains(key).iter().cloned());
            }
        }
        let domains = topology.domains(group.key).iter();
        reachable.insert(id, domains.map(|d| values.contains(d)).collect());
    }
    reachable
}

/// The tables in the order in which pools are tried.
fn pool_tables(
    problem: &Problem,
    prepared: &Prepared,
    vocabulary: &mut Vocabulary,
) -> Vec<PoolTable> {
    prepared
        .pools
        .iter()
        .filter_map(|of_pool| {
            let pool = problem.pools.iter().find(|pool| {
                pool.node_pool.metadata.name.as_deref().unwrap_or("") == of_pool.name
            })?;
            let mut table = PoolTable::new(pool, of_pool, vocabulary);
            table.judge_limits(problem.pods.len());
            Some(table)
        })
        .collect()
}
