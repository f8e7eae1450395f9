//! From the problem to the solver's state: interned requirements, tables of rows, topology counts.
//!
//! What does not change from solve to solve comes prepared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Solver;
use super::existing::{Shapes, nodes};
use super::pod_groups::Grouper;
use super::pool_table::PoolTable;
use super::prepared::Prepared;
use super::topology::{GroupId, HOSTNAME_KEY, Membership, Place, Rule, Topology};
use super::views::has_preference_taint;
use super::vocabulary::{SetId, Vocabulary};
use crate::error::PodError;
use crate::problem::Problem;
use crate::taints::untolerated;
use k8s_openapi::api::core::v1::Taint;

impl<'a> Solver<'a> {
    pub(super) fn new(problem: &'a Problem, prepared: &Prepared) -> Self {
        let mut refused = BTreeMap::new();
        let mut pods = Vec::with_capacity(problem.pods.len());
        for (index, pod) in problem.pods.iter().enumerate() {
            let volume_error = problem
                .volumes
                .get(&pod.key)
                .and_then(|volumes| volumes.error.clone());
            if pod.shape.uses_resource_claims {
                refused.insert(index, PodError::ResourceClaims);
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
            || problem
                .nodes
                .iter()
                .any(|n| has_preference_taint(&n.taints));
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
        let pools = pool_tables(problem, prepared, &mut vocabulary);
        set_domains(problem, prepared, &mut topology);
        let mut solver = Self {
            problem,
            vocabulary,
            dims,
            topology,
            pools,
            groups,
            nodes: Vec::new(),
            claims: Vec::new(),
            placed: 0,
            reachable: BTreeMap::new(),
            unit_prices: BTreeMap::new(),
            ranked: BTreeMap::new(),
            refused,
        };
        let mut shapes = Arc::clone(&prepared.shapes);
        solver.nodes = nodes(problem, &prepared.nodes, &solver.dims, &mut shapes);
        solver.reachable = reachable(problem, prepared, &solver.topology);
        solver.count_bound_pods(shapes);
        solver
    }

    /// Counts the pods that already run, and notes where each node stands.
    fn count_bound_pods(&mut self, mut shapes: Arc<Shapes>) {
        if self.topology.is_empty() {
            return;
        }
        // Pods to place that still run on a node do not count there.
        let bound = self.problem.pods.iter().filter(|p| p.node_name.is_some());
        let moving: BTreeSet<_> = bound.map(|p| &p.key).collect();
        let homes = self
            .problem
            .pods
            .iter()
            .filter_map(|p| p.node_name.as_deref());
        let homes: BTreeSet<&str> = homes.collect();
        let mut memberships: Vec<Option<Membership>> = Vec::new();
        for index in 0..self.nodes.len() {
            let node = self.nodes[index].node;
            let mut place = self.place_of_node(index);
            let pods = if homes.contains(node.name.as_str()) {
                Arc::make_mut(&mut shapes).count(node, |pod| moving.contains(&pod.key))
            } else {
                Arc::clone(&self.nodes[index].pods)
            };
            memberships.resize(shapes.all.len(), None);
            for &(shape, count) in pods.iter() {
                let topology = &mut self.topology;
                let membership = memberships[shape].get_or_insert_with(|| {
                    bound_membership(topology, &shapes.all[shape], self.problem)
                });
                if membership.owned.is_empty() && membership.selected.is_empty() {
                    continue;
                }
                self.topology.record_host(membership, &mut place, count);
                for key in 0..place.domains.len() {
                    if let Some(domain) = place.domains[key] {
                        let at = (key, domain);
                        self.topology
                            .record_domain(membership, at, &place.uncounted, count);
                    }
                }
            }
            self.nodes[index].place = place;
        }
    }

    fn place_of_node(&self, index: usize) -> Place {
        let node = self.nodes[index].node;
        let domains = self
            .topology
            .keys()
            .iter()
            .enumerate()
            .map(|(key, name)| {
                let value = (key != HOSTNAME_KEY)
                    .then(|| node.labels.get(name))
                    .flatten()?;
                self.topology.domain(key, value)
            })
            .collect();
        let uncounted = (0..self.topology.len())
            .filter(|id| {
                let filter = &self.topology.group(*id).filter;
                let fits = |set: &SetId| super::existing::meets(node, self.vocabulary.get(*set));
                let is_outside =
                    !filter.requirements.is_empty() && !filter.requirements.iter().any(fits);
                let is_tainted = filter
                    .tolerations
                    .as_ref()
                    .is_some_and(|tolerations| untolerated(&node.taints, tolerations).is_some());
                is_outside || is_tainted
            })
            .collect();
        Place {
            domains,
            uncounted,
            ..Place::default()
        }
    }
}

/// Required anti-affinity terms of running pods keep pending ones out, so they need groups too.
fn register_terms(problem: &Problem, shape: &crate::pod::PodShape, topology: &mut Topology) {
    for term in &shape.pod_anti_affinity {
        let rule = Rule::AntiAffinity { is_required: true };
        topology.affinity(rule, term, &shape.namespace, &problem.namespaces);
    }
}

fn bound_membership(
    topology: &mut Topology,
    shape: &crate::pod::PodShape,
    problem: &Problem,
) -> Membership {
    let selected = topology.selecting(&shape.namespace, &shape.labels);
    let owned = shape
        .pod_anti_affinity
        .iter()
        .map(|term| {
            let rule = Rule::AntiAffinity { is_required: true };
            let group = topology.affinity(rule, term, &shape.namespace, &problem.namespaces);
            super::topology::Owned {
                group,
                is_self_selecting: selected.binary_search(&group).is_ok(),
                min_domains: None,
            }
        })
        .collect();
    Membership { owned, selected }
}

/// The domains of every key: what pools could offer, available now or not, and what nodes have.
fn set_domains(problem: &Problem, prepared: &Prepared, topology: &mut Topology) {
    for key in 1..topology.keys().len() {
        let name = topology.keys()[key].clone();
        let mut values: BTreeSet<String> = BTreeSet::new();
        for admission in prepared.admissions.values() {
            values.extend(admission.domains(&name).iter().cloned());
        }
        values.extend(
            problem
                .nodes
                .iter()
                .filter_map(|n| n.labels.get(&name).cloned()),
        );
        topology.set_domains(key, values);
    }
}

/// For each spread that honours taints, which domains a tolerated pool or node has.
fn reachable(
    problem: &Problem,
    prepared: &Prepared,
    topology: &Topology,
) -> BTreeMap<GroupId, Vec<bool>> {
    let mut reachable = BTreeMap::new();
    for id in 0..topology.len() {
        let group = topology.group(id);
        let Some(tolerations) = &group.filter.tolerations else {
            continue;
        };
        let key = &topology.keys()[group.key];
        let is_open = |all: &[Taint]| untolerated(all, tolerations).is_none();
        let mut values: BTreeSet<String> = problem
            .nodes
            .iter()
            .filter(|n| is_open(&n.taints))
            .filter_map(|n| n.labels.get(key).cloned())
            .collect();
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
            let mut table = PoolTable::new(pool, &of_pool.admission, &of_pool.rows, vocabulary);
            table.judge_limits(problem.pods.len());
            Some(table)
        })
        .collect()
}
