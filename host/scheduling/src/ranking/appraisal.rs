//! Appraisal of nodes that run, as the ranking policy reckons: one call for offerings that nobody may buy at the
//! moment.
//!
//! What can be bought has its cost from the round's packing call; a node on an offering without capacity, or on one
//! that its pool no longer admits, would have none. The answer is a price and nothing else: exclusions say what not to
//! buy.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use apis::NodePool;
use hooks::ranking::{
    ClaimView, OfferingTable, PodsSummary, PolicyUse, RankHook, RankRound, RankStage, Symbols,
    WorkloadTable,
};
use jiff::Timestamp;

use super::table::{claim_requirements, offering_table_of};
use super::usage::{Usage, UsageKey, usage_table};
use crate::instance_type::{InstanceType, OfferingKey};
use crate::problem::Options;
use crate::requirements::Requirements;

/// The nodes of one pool that are to be appraised.
#[derive(Debug)]
pub struct AppraisedPool<'a> {
    /// The NodePool as the API has it.
    pub node_pool: &'a NodePool,
    /// Instance types of the pool.
    pub instance_types: &'a [Arc<InstanceType>],
    /// Offerings that its nodes run on.
    pub offerings: BTreeSet<OfferingKey>,
}

/// Effective cost an hour by pool and offering; what the pool's types do not have is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Appraisal {
    /// USD an hour as the policy reckons.
    pub costs: BTreeMap<UsageKey, f64>,
    /// Policies that were asked, and how it went.
    pub uses: Vec<PolicyUse>,
}

impl Appraisal {
    /// Asks the policy once for all pools.
    pub fn ask(
        pools: &[AppraisedPool<'_>],
        usage: &BTreeMap<UsageKey, Usage>,
        options: &Options,
        hook: &dyn RankHook,
    ) -> Self {
        let (types, keys) = wanted(pools);
        let mut symbols = Symbols::default();
        let (table, rows) = offering_table_of(&types, &mut symbols, |at, offering| {
            let pool: &UsageKey = &keys[at];
            pool.offering.zone.as_deref() == offering.zone()
                && pool.offering.capacity_type == offering.capacity_type()
        });
        if rows.is_empty() {
            return Self::default();
        }
        let claims: Vec<ClaimView> = pools
            .iter()
            .map(|pool| {
                let name = pool.node_pool.metadata.name.as_deref().unwrap_or("");
                let own = (0_u32..).zip(&rows);
                let own = own.filter(|(_, row)| keys[row.instance_type].pool == name);
                view(pool, own.map(|it| it.0).collect(), &mut symbols)
            })
            .filter(|claim| !claim.candidates.is_empty())
            .collect();
        let usage = usage_table(usage, &mut symbols);
        let round = RankRound {
            now_seconds: seconds(options.now),
            cluster: options.cluster.clone(),
            decision_id: options.decision_id.clone(),
            seed: options.seed,
            table: OfferingTable {
                symbols: symbols.into_words(),
                ..table
            },
            usage,
            workloads: WorkloadTable::default(),
            claims,
        };
        let answer = hook.rank(&round);
        let mut appraisal = Self {
            costs: BTreeMap::new(),
            uses: answer.uses,
        };
        for (claim, ranking) in round.claims.iter().zip(answer.rankings) {
            for (row, score) in claim.candidates.iter().zip(ranking.scores) {
                let key = rows.get(*row as usize).map(|it| &keys[it.instance_type]);
                if let Some(key) = key.filter(|_| score.is_finite() && score >= 0.0) {
                    appraisal.costs.insert(key.clone(), score);
                }
            }
        }
        appraisal
    }
}

/// The types to put into the table, once for each offering wanted, with whose offering it is.
fn wanted(pools: &[AppraisedPool<'_>]) -> (Vec<Arc<InstanceType>>, Vec<UsageKey>) {
    let (mut types, mut keys) = (Vec::new(), Vec::new());
    for pool in pools {
        let name = pool.node_pool.metadata.name.clone().unwrap_or_default();
        for offering in &pool.offerings {
            let mut known = pool.instance_types.iter();
            if let Some(it) = known.find(|it| it.name == offering.instance_type) {
                types.push(Arc::clone(it));
                keys.push(UsageKey {
                    pool: name.clone(),
                    offering: offering.clone(),
                });
            }
        }
    }
    (types, keys)
}

fn view(pool: &AppraisedPool<'_>, candidates: Vec<u32>, symbols: &mut Symbols) -> ClaimView {
    let node_pool = pool.node_pool;
    let template = &node_pool.spec.template;
    let wanted = Requirements::from_node_selector_requirements(&template.spec.requirements);
    ClaimView {
        nodepool: symbols.intern(node_pool.metadata.name.as_deref().unwrap_or("")),
        weight: u32::try_from(node_pool.weight()).unwrap_or(0),
        stage: RankStage::Appraisal,
        candidates,
        requirements: claim_requirements(&wanted, symbols),
        pods: PodsSummary::default(),
        labels: symbols.pairs(&template.metadata.labels),
        nodepool_labels: symbols.pairs(node_pool.metadata.labels.iter().flatten()),
        free_addresses: Vec::new(),
    }
}

fn seconds(now: Timestamp) -> u64 {
    u64::try_from(now.as_second()).unwrap_or(0)
}
