//! From the problem to the solver's state: interned requirements, tables of rows, topology counts.
//!
//! The ranking policy is asked here, once for all pools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::resources::Resources;

use super::Solver;
use super::daemons;
use super::existing::{Node, ordered};
use super::pod_groups::Grouper;
use super::pool_table::{PoolTable, TableParts, admitted, template_requirements};
use super::rank_round::rank;
use super::topology::{GroupId, HOSTNAME_KEY, Membership, Place, Rule, Topology};
use super::views::has_preference_taint;
use super::vocabulary::{Dimensions, SetId, Vocabulary};
use crate::error::PodError;
use crate::problem::{Pool, Problem};
use crate::ranking::RankHook;
use crate::requirements::Requirements;
use crate::solution::Solution;
use crate::taints::untolerated;
use k8s_openapi::api::core::v1::Taint;

impl<'a> Solver<'a> {
    pub(super) fn new(problem: &'a Problem, hook: &dyn RankHook, solution: &mut Solution) -> Self {
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
        let dims = dimensions(problem, &pods);
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
        register_bound_terms(problem, &mut topology);
        let grouper = Grouper {
            problem,
            vocabulary: &mut vocabulary,
            topology: &mut topology,
            dims: &dims,
            has_preference_taints,
        };
        let groups = grouper.group(&pods);
        let pools = pool_tables(problem, hook, (&mut vocabulary, &dims), solution);
        set_domains(problem, &mut topology);
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
        solver.nodes = ordered(problem)
            .into_iter()
            .map(|node| Node::new(node, &problem.daemons, &solver.dims))
            .collect();
        solver.reachable = reachable(problem, &solver.topology);
        solver.count_bound_pods();
        solver
    }

    /// Counts the pods that already run, and notes where each node stands.
    fn count_bound_pods(&mut self) {
        if self.topology.is_empty() {
            return;
        }
        let moving: BTreeSet<_> = self.problem.pods.iter().map(|p| &p.key).collect();
        let mut memberships: BTreeMap<*const crate::pod::PodShape, Membership> = BTreeMap::new();
        for index in 0..self.nodes.len() {
            let node = self.nodes[index].node;
            let mut place = self.place_of_node(index);
            for pod in &node.pods {
                if pod.is_terminal() || pod.is_terminating() || moving.contains(&pod.key) {
                    continue;
                }
                let topology = &mut self.topology;
                let membership = memberships
                    .entry(Arc::as_ptr(&pod.shape))
                    .or_insert_with(|| bound_membership(topology, &pod.shape, self.problem));
                self.topology.record_host(membership, &mut place, 1);
                for (key, domain) in place.domains.clone().into_iter().enumerate() {
                    if let Some(domain) = domain {
                        let at = (key, domain);
                        self.topology
                            .record_domain(membership, at, &place.uncounted, 1);
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

fn dimensions(problem: &Problem, pods: &[usize]) -> Dimensions {
    let mut shapes: Vec<&Resources> = Vec::new();
    let mut seen = BTreeSet::new();
    for pod in pods {
        let shape = &problem.pods[*pod].shape;
        if seen.insert(Arc::as_ptr(shape)) {
            shapes.push(&shape.requests);
        }
    }
    let daemons = problem.daemons.iter().map(|d| &d.shape.requests);
    Dimensions::collect(shapes.into_iter().chain(daemons))
}

/// Required anti-affinity terms of running pods keep pending ones out, so they need groups too.
fn register_bound_terms(problem: &Problem, topology: &mut Topology) {
    let mut seen = BTreeSet::new();
    for pod in problem.nodes.iter().flat_map(|n| &n.pods) {
        if pod.shape.pod_anti_affinity.is_empty() || !seen.insert(Arc::as_ptr(&pod.shape)) {
            continue;
        }
        for term in &pod.shape.pod_anti_affinity {
            let rule = Rule::AntiAffinity { is_required: true };
            topology.affinity(rule, term, &pod.shape.namespace, &problem.namespaces);
        }
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
fn set_domains(problem: &Problem, topology: &mut Topology) {
    for key in 1..topology.keys().len() {
        let name = topology.keys()[key].clone();
        let mut values: BTreeSet<String> = BTreeSet::new();
        for pool in &problem.pools {
            values.extend(pool_domains(pool, &name));
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
fn reachable(problem: &Problem, topology: &Topology) -> BTreeMap<GroupId, Vec<bool>> {
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
            if is_open(&pool.node_pool.spec.template.spec.taints) {
                values.extend(pool_domains(pool, key));
            }
        }
        let domains = topology.domains(group.key).iter();
        reachable.insert(id, domains.map(|d| values.contains(d)).collect());
    }
    reachable
}

fn pool_domains(pool: &Pool, key: &str) -> BTreeSet<String> {
    let template = template_requirements(pool);
    let of_template = template.get(key);
    let mut values: BTreeSet<&str> = BTreeSet::new();
    for instance_type in pool.instance_types.iter() {
        let own = std::iter::once(&instance_type.requirements);
        let offered = instance_type.offerings.iter().map(|o| &o.requirements);
        for requirement in own.chain(offered).filter_map(|r| r.find(key)) {
            if !requirement.is_complement() {
                values.extend(requirement.values());
            }
        }
    }
    values.retain(|value| of_template.has(value));
    if values.is_empty() && !of_template.is_complement() {
        values.extend(of_template.values());
    }
    values.into_iter().map(str::to_owned).collect()
}

/// One pool's share of the round: its position in the problem and its admitted rows.
pub(super) struct Admitted<'a> {
    pub(super) pool: &'a Pool,
    pub(super) template: Requirements,
    pub(super) rows: Vec<(usize, usize)>,
}

/// Asks the policy once and builds the tables in the order in which pools are tried.
fn pool_tables(
    problem: &Problem,
    hook: &dyn RankHook,
    (vocabulary, dims): (&mut Vocabulary, &Dimensions),
    solution: &mut Solution,
) -> Vec<PoolTable> {
    let mut pools: Vec<&Pool> = problem.pools.iter().collect();
    let name = |p: &Pool| p.node_pool.metadata.name.clone().unwrap_or_default();
    // Of equal weights the greater name goes first, as in Karpenter.
    pools.sort_by(|a, b| {
        b.node_pool
            .weight()
            .cmp(&a.node_pool.weight())
            .then_with(|| name(b).cmp(&name(a)))
    });
    let mut round: Vec<Admitted<'_>> = Vec::new();
    for pool in pools {
        let template = template_requirements(pool);
        let rows = admitted(pool, &template, problem.options.reserved);
        if rows.is_empty() {
            let message =
                "no instance type and available offering meets the requirements of the nodepool";
            solution.pool_errors.insert(name(pool), message.to_owned());
        } else {
            round.push(Admitted {
                pool,
                template,
                rows,
            });
        }
    }
    let (costs, answer) = rank(problem, hook, &round);
    solution.uses = answer.uses;
    let mut tables = Vec::new();
    for ((admitted, ranking), costs) in round.into_iter().zip(answer.rankings).zip(costs) {
        if let Some(note) = ranking.note {
            solution.notes.insert(name(admitted.pool), note);
        }
        let excluded: BTreeSet<usize> = ranking
            .excluded
            .iter()
            .map(|(position, _)| *position as usize)
            .collect();
        let daemons = daemons::overheads(admitted.pool, &admitted.template, &problem.daemons, dims);
        let rows = admitted.rows.iter().zip(costs).enumerate();
        let parts = TableParts {
            pool: admitted.pool,
            template: vocabulary.set(admitted.template),
            rows: rows
                .filter(|(position, _)| !excluded.contains(position))
                .map(|(_, ((type_index, offering), cost))| (*type_index, *offering, cost))
                .collect(),
            excluded: excluded.len(),
            daemons,
        };
        let mut table = PoolTable::new(parts, dims, vocabulary);
        table.judge_limits(problem.pods.len());
        tables.push(table);
    }
    tables
}
