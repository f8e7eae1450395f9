//! The part of a solve that does not change from one solve to the next: pools with their rows ranked, nodes with what
//! is available on them.
//!
//! The policy is asked here, once for all pools, and every solve over the same pools shares the answer. Results of
//! earlier rounds are taken over where the types, the pool's requirements, the scores and the daemons are the same,
//! so an answer never depends on what was kept.

mod table_cache;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodeRef;
use locks::lock;

use super::admission::Admission;
use super::counts::CountCache;
use super::nodes::{PreparedNode, Shapes, block_maxima, ordered};
use super::pool_rows::PoolRows;
use super::rank_round::rank;
use super::views::has_preference_taint;
use super::vocabulary::{Amounts, Dimensions};
use crate::instance_type::InstanceType;
use crate::pod::{Pod, PodShape};
use crate::problem::{ExistingNode, Pool, Problem, by_weight};
use crate::ranking::{
    Exclusions, ListPrices, PolicyUse, PremiumMax, RankHook, Ranking, premium_of_pool,
};

use table_cache::RowsOrigin;
pub use table_cache::TableCache;

/// A pool of the round.
#[derive(Debug, Clone)]
pub(crate) struct PreparedPool {
    pub(crate) name: String,
    pub(crate) admission: Arc<Admission>,
    pub(crate) rows: Arc<PoolRows>,
    pub(crate) premium_max: PremiumMax,
    /// Positions of admitted rows that the policy excludes.
    pub(super) excluded: Vec<u32>,
    /// Report of the offerings that the policy ruled out. Not part of the rows, which are kept from round to round:
    /// reasons may change.
    pub(crate) exclusions: Arc<Exclusions>,
}

/// An offering that a pool may buy, with what the policy says it costs.
#[derive(Debug, Clone, Copy)]
pub struct Sale<'a> {
    /// Instance type that is sold.
    pub instance_type: &'a Arc<InstanceType>,
    /// Position in the type's offerings.
    pub offering: usize,
    /// USD an hour as the policy reckons.
    pub effective_cost_per_hour: f64,
}

impl Sale<'_> {
    /// List price, USD an hour.
    pub fn price_per_hour(&self) -> f64 {
        self.instance_type.offerings[self.offering].price_per_hour
    }
}

/// The pools and nodes of a round, ready for any number of solves.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) dims: Dimensions,
    /// In the order in which they are tried; pools that can buy nothing are absent.
    pub(crate) pools: Vec<PreparedPool>,
    /// Every pool's admission by name, for the domains of labels.
    pub(super) admissions: BTreeMap<String, Arc<Admission>>,
    /// In the order in which they are tried.
    pub(crate) nodes: Vec<PreparedNode>,
    /// The most that any node of each block has available.
    pub(super) block_maxima: Vec<Amounts>,
    pub(super) shapes: Shapes,
    /// Where the running pods count.
    pub(crate) counts: CountCache,
    /// Nodes that would rather not take every pod.
    pub(super) with_preference_taints: BTreeSet<usize>,
    positions: BTreeMap<NodeRef, usize>,
    /// Shapes of running pods that keep others out.
    pub(super) repelling: Vec<Arc<PodShape>>,
    pub(crate) pool_errors: BTreeMap<String, String>,
    pub(crate) notes: BTreeMap<String, String>,
    uses: Vec<PolicyUse>,
}

impl PreparedPool {
    fn new(
        pool: &Pool,
        admission: Arc<Admission>,
        rows: Arc<PoolRows>,
        ranking: &Ranking,
        premium_max: PremiumMax,
    ) -> Self {
        let excluded = || ranking.excluded.iter();
        let bound = ranking.premium_max.unwrap_or(PremiumMax::OFF);
        Self {
            name: name(pool),
            admission,
            rows,
            premium_max: premium_of_pool(&pool.node_pool, premium_max).tighter(bound),
            excluded: excluded().map(|it| it.0).collect(),
            exclusions: Arc::new(Exclusions::of(excluded().map(|it| it.1.as_str()))),
        }
    }
}

impl Prepared {
    /// Asks the policy and works out what all solves over these pools, daemons, namespaces and nodes share. A solve may
    /// leave nodes out, add their pods and new ones that ask for no other resources than pods of the problem or of its
    /// nodes, and differ in what is in use and in packing.
    pub fn new(problem: &Problem, hook: &dyn RankHook, cache: &TableCache) -> Self {
        let mut kept = lock(&cache.0);
        let number = kept.begin_round();
        let dims = dimensions(problem);
        let mut pool_errors = BTreeMap::new();
        let mut admissions = BTreeMap::new();
        let mut round: Vec<(&Pool, Arc<Admission>)> = Vec::new();
        for pool in in_order(&problem.pools) {
            let admission = kept.admission(pool, problem);
            admissions.insert(name(pool), Arc::clone(&admission));
            if admission.rows.is_empty() {
                let message = "no instance type and available offering meets the requirements of the nodepool";
                pool_errors.insert(name(pool), message.to_owned());
            } else {
                round.push((pool, admission));
            }
        }
        let catalogue = kept.catalogue(&round);
        // Other rounds need not wait for what a policy thinks.
        drop(kept);
        let (costs, answer) = rank(problem, hook, &round, &catalogue);
        let mut notes = BTreeMap::new();
        let mut pools = Vec::new();
        let daemons = problem.daemons.iter().map(|it| Arc::clone(&it.shape));
        let daemons: Arc<[Arc<PodShape>]> = daemons.collect();
        let mut kept = lock(&cache.0);
        for (((pool, admission), ranking), costs) in
            round.into_iter().zip(answer.rankings).zip(costs)
        {
            let excluded = ranking.excluded.iter().map(|it| it.0 as usize);
            let origin = RowsOrigin {
                admission: Arc::clone(&admission),
                costs,
                excluded: excluded.collect(),
                taints: pool.node_pool.spec.template.spec.taints.clone(),
                daemons: Arc::clone(&daemons),
                dims: dims.clone(),
            };
            let rows = kept.rows(pool, origin);
            let own = problem.options.premium_max;
            pools.push(PreparedPool::new(pool, admission, rows, &ranking, own));
            notes.extend(ranking.note.map(|note| (name(pool), note)));
        }
        kept.forget(number);
        drop(kept);
        Self {
            dims,
            pools,
            admissions,
            nodes: Vec::new(),
            block_maxima: Vec::new(),
            shapes: Shapes::default(),
            counts: CountCache::default(),
            with_preference_taints: BTreeSet::new(),
            positions: BTreeMap::new(),
            repelling: Vec::new(),
            pool_errors,
            notes,
            uses: answer.uses,
        }
        .with_nodes_of(problem)
    }

    /// The same pools beside the nodes of another problem, whose pods ask for no other resources.
    pub(crate) fn with_nodes_of(&self, problem: &Problem) -> Self {
        let mut shapes = Shapes::default();
        let nodes = prepared_nodes(problem, &self.dims, &mut shapes);
        let names = (0..).zip(&nodes);
        let would_rather_not = |it: &PreparedNode| has_preference_taint(&it.node.taints);
        Self {
            repelling: repelling(problem),
            block_maxima: block_maxima(&nodes, &self.dims),
            positions: names
                .map(|(at, it)| (it.node.node_ref.clone(), at))
                .collect(),
            with_preference_taints: (0..nodes.len())
                .filter(|at| would_rather_not(&nodes[*at]))
                .collect(),
            nodes,
            shapes,
            counts: CountCache::default(),
            dims: self.dims.clone(),
            pools: self.pools.clone(),
            admissions: self.admissions.clone(),
            pool_errors: self.pool_errors.clone(),
            notes: self.notes.clone(),
            uses: self.uses.clone(),
        }
    }

    /// All nodes but these.
    pub(crate) fn nodes_without(
        &self,
        removed: &[NodeRef],
    ) -> impl Iterator<Item = &Arc<ExistingNode>> {
        let nodes = self.nodes.iter().map(|it| &it.node);
        nodes.filter(|it| !removed.contains(&it.node_ref))
    }

    pub(crate) fn positions(&self, nodes: &[NodeRef]) -> BTreeSet<usize> {
        let known = nodes.iter().filter_map(|node| self.positions.get(node));
        known.copied().collect()
    }

    /// Offerings that a pool may buy, best first: none that the policy excludes. `None` for a pool that takes no part.
    pub fn sales(&self, pool: &str) -> Option<impl Iterator<Item = Sale<'_>>> {
        let pool = self.pools.iter().find(|it| it.name == pool)?;
        let rows = pool.rows.rows.iter();
        Some(rows.map(|row| Sale {
            instance_type: &pool.rows.types[row.type_index].instance_type,
            offering: row.offering,
            effective_cost_per_hour: row.effective_cost_per_hour,
        }))
    }

    /// The greatest premium on a node of the pool: off where costs are list prices.
    pub fn premium_max(&self, pool: &str) -> PremiumMax {
        let pool = self.pools.iter().find(|it| it.name == pool);
        let bound = pool
            .filter(|it| it.rows.has_policy_costs())
            .map(|it| it.premium_max);
        bound.unwrap_or(PremiumMax::OFF)
    }

    /// The default's ranking in place of the policy's, where that reckons otherwise than by list price.
    pub(crate) fn list_prices(&self) -> Option<ListPrices> {
        let mut pools = self.pools.iter();
        pools
            .any(|it| it.rows.has_policy_costs())
            .then(|| ListPrices {
                excluded: self
                    .pools
                    .iter()
                    .map(|it| (it.name.clone(), it.excluded.clone()))
                    .collect(),
            })
    }

    /// Names of the pools that may buy something.
    pub fn pool_names(&self) -> impl Iterator<Item = &str> {
        self.pools.iter().map(|it| it.name.as_str())
    }

    /// The policies that were asked.
    pub fn uses(&self) -> &[PolicyUse] {
        &self.uses
    }
}

/// The nodes in the order in which they are tried. Pods to place that still run on one do not count there.
fn prepared_nodes(problem: &Problem, dims: &Dimensions, shapes: &mut Shapes) -> Vec<PreparedNode> {
    let bound = problem.pods.iter().filter(|pod| pod.node_name.is_some());
    let moving: BTreeSet<_> = bound.map(|pod| &pod.key).collect();
    let homes = problem
        .pods
        .iter()
        .filter_map(|pod| pod.node_name.as_deref());
    let homes: BTreeSet<&str> = homes.collect();
    let mut prepare = |node: &Arc<ExistingNode>| {
        let name = node.node_ref.node_name();
        let is_home = name.is_some_and(|it| homes.contains(it));
        let is_moving = |pod: &Pod| is_home && moving.contains(&pod.key);
        PreparedNode::new(node, &problem.daemons, dims, shapes, is_moving)
    };
    ordered(problem).into_iter().map(&mut prepare).collect()
}

fn name(pool: &Pool) -> String {
    pool.node_pool.metadata.name.clone().unwrap_or_default()
}

fn in_order(pools: &[Pool]) -> Vec<&Pool> {
    let mut pools: Vec<&Pool> = pools.iter().collect();
    pools.sort_by(|a, b| by_weight(&a.node_pool, &b.node_pool));
    pools
}

fn dimensions(problem: &Problem) -> Dimensions {
    let mut seen = BTreeSet::new();
    let bound = problem.nodes.iter().flat_map(|node| &node.pods);
    let shapes: Vec<&PodShape> = problem
        .pods
        .iter()
        .chain(bound)
        .filter(|pod| seen.insert(Arc::as_ptr(&pod.shape)))
        .map(|pod| &*pod.shape)
        .collect();
    let daemons = problem.daemons.iter().map(|d| &d.shape.requests);
    Dimensions::collect(
        shapes
            .into_iter()
            .map(|shape| &shape.requests)
            .chain(daemons),
    )
}

/// Required anti-affinity terms of running pods keep pending ones out.
fn repelling(problem: &Problem) -> Vec<Arc<PodShape>> {
    let mut seen = BTreeSet::new();
    let mut shapes: Vec<Arc<PodShape>> = problem
        .nodes
        .iter()
        .flat_map(|node| &node.pods)
        .filter(|pod| {
            !pod.shape.pod_anti_affinity.is_empty() && seen.insert(Arc::as_ptr(&pod.shape))
        })
        .map(|pod| Arc::clone(&pod.shape))
        .collect();
    // Groups are numbered in this order, which must not be that of the input.
    shapes.sort_unstable();
    shapes
}
