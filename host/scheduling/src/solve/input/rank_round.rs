//! The one call of the ranking policy in a round: all pools, all offerings, one answer.
//!
//! Nothing here weighs the answer; scores that cannot be used give way to prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use hooks::columns::saturated;

use super::admission::Admission;
use crate::instance_type::InstanceType;
use crate::problem::{Pool, Problem};
use crate::ranking::{
    ClaimView, NO_SYMBOL, Needs, OfferingTable, PodsSummary, RankAnswer, RankHook, RankRound,
    RankStage, Symbols, WorkloadContext, WorkloadTable, claim_requirements, offering_table,
    pods_summary, push_workloads, usage_table,
};

/// The types of all pools, each once, as the table that policies see.
#[derive(Debug)]
pub(super) struct OfferingCatalogue {
    admissions: Vec<Arc<Admission>>,
    table: OfferingTable,
    symbols: Symbols,
    /// The rows that each pool may buy.
    candidates: Vec<Vec<u32>>,
}

impl OfferingCatalogue {
    pub(crate) fn new(admissions: Vec<Arc<Admission>>) -> Self {
        let mut types: Vec<Arc<InstanceType>> = Vec::new();
        // Pools of one class share their types; identity only saves work, the order of first sight decides.
        let mut known: BTreeMap<*const InstanceType, usize> = BTreeMap::new();
        for admission in &admissions {
            let mut last = usize::MAX;
            for row in &admission.rows {
                if row.type_index == last {
                    continue;
                }
                last = row.type_index;
                let instance_type = &admission.instance_types[last];
                known.entry(Arc::as_ptr(instance_type)).or_insert_with(|| {
                    types.push(Arc::clone(instance_type));
                    types.len() - 1
                });
            }
        }
        let mut symbols = Symbols::default();
        let (table, rows) = offering_table(&types, &mut symbols);
        let mut first_row = vec![rows.len(); types.len() + 1];
        for (index, row) in rows.iter().enumerate().rev() {
            first_row[row.instance_type] = index;
        }
        let candidates = admissions
            .iter()
            .map(|admission| candidates(admission, &known, &first_row))
            .collect();
        Self {
            admissions,
            table,
            symbols,
            candidates,
        }
    }

    pub(super) fn admissions(&self) -> impl Iterator<Item = &Arc<Admission>> {
        self.admissions.iter()
    }

    /// Whether it is what `new` would make of these.
    pub(super) fn is_of<'a>(&self, admissions: impl Iterator<Item = &'a Arc<Admission>>) -> bool {
        let mut mine = self.admissions.iter();
        let mut theirs = admissions;
        loop {
            match (mine.next(), theirs.next()) {
                (None, None) => return true,
                (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
                (Some(_), Some(_) | None) | (None, Some(_)) => return false,
            }
        }
    }
}

/// The table rows of an admission's rows.
fn candidates(
    admission: &Admission,
    known: &BTreeMap<*const InstanceType, usize>,
    first_row: &[usize],
) -> Vec<u32> {
    let mut candidates = Vec::with_capacity(admission.rows.len());
    for of_type in admission.rows.chunk_by(|a, b| a.type_index == b.type_index) {
        let instance_type = &admission.instance_types[of_type[0].type_index];
        let at = known.get(&Arc::as_ptr(instance_type)).copied().unwrap_or(0);
        let mut table_row = first_row[at];
        let mut next = 0;
        for row in of_type {
            let before = &instance_type.offerings[next..row.offering];
            table_row += before.iter().filter(|o| o.is_available()).count();
            next = row.offering;
            candidates.push(saturated(table_row));
        }
    }
    candidates
}

/// One call for all pools. Answers the effective cost of each admitted row, by pool.
pub(crate) fn rank(
    problem: &Problem,
    hook: &dyn RankHook,
    round: &[(&Pool, Arc<Admission>)],
    catalogue: &OfferingCatalogue,
) -> (Vec<Vec<f64>>, RankAnswer) {
    if round.is_empty() {
        return (Vec::new(), RankAnswer::default());
    }
    let mut symbols = catalogue.symbols.clone();
    let options = &problem.options;
    let summary = pods_summary(&problem.pods, &problem.owners, options.now);
    let needs = hook.needs();
    let workloads = workloads(problem, needs, &mut symbols);
    let usage = usage_table(&problem.usage, &mut symbols);
    let claims = round
        .iter()
        .zip(&catalogue.candidates)
        .map(|((pool, admission), candidates)| ClaimView {
            candidates: candidates.clone(),
            ..pool_view(pool, admission, summary, needs, &mut symbols)
        })
        .collect();
    let rank_round = RankRound {
        now_seconds: u64::try_from(options.now.as_second()).unwrap_or(0),
        cluster: options.cluster.clone(),
        decision_id: options.decision_id.clone(),
        seed: options.seed,
        table: OfferingTable {
            symbols: symbols.into_words(),
            ..catalogue.table.clone()
        },
        usage,
        workloads,
        claims,
    };
    let mut answer = hook.rank(&rank_round);
    answer.rankings.resize_with(round.len(), Default::default);
    let costs = rank_round
        .claims
        .iter()
        .zip(&answer.rankings)
        .map(|(claim, ranking)| effective_costs(&rank_round.table, claim, &ranking.scores))
        .collect();
    (costs, answer)
}

/// Every claim stands for a whole pool, and all pods wait for any of them: they are told of once.
fn workloads(problem: &Problem, needs: Needs, symbols: &mut Symbols) -> WorkloadTable {
    let mut table = WorkloadTable::default();
    if needs.workloads {
        let context = WorkloadContext {
            owners: &problem.owners,
            now: problem.options.now,
        };
        push_workloads(&mut table, NO_SYMBOL, &problem.pods, context, symbols);
    }
    table
}

fn pool_view(
    pool: &Pool,
    admission: &Admission,
    pods: PodsSummary,
    needs: Needs,
    symbols: &mut Symbols,
) -> ClaimView {
    let node_pool = &pool.node_pool;
    let template_labels = &node_pool.spec.template.metadata.labels;
    let pool_labels = node_pool.metadata.labels.iter().flatten();
    let addresses = pool.free_addresses.iter().filter(|_| needs.free_addresses);
    ClaimView {
        nodepool: symbols.intern(node_pool.metadata.name.as_deref().unwrap_or("")),
        weight: u32::try_from(node_pool.weight()).unwrap_or(0),
        stage: RankStage::Packing,
        candidates: Vec::new(),
        requirements: claim_requirements(&admission.template, symbols),
        pods,
        labels: symbols.pairs(template_labels),
        nodepool_labels: symbols.pairs(pool_labels),
        free_addresses: addresses
            .map(|(zone, free)| (symbols.intern(zone), *free))
            .collect(),
    }
}

/// The policy's scores, or the prices where it gave none that can be used.
fn effective_costs(table: &OfferingTable, claim: &ClaimView, scores: &[f64]) -> Vec<f64> {
    let is_usable = scores.len() == claim.candidates.len()
        && scores
            .iter()
            .all(|score| score.is_finite() && *score >= 0.0);
    if is_usable {
        return scores.to_vec();
    }
    claim
        .candidates
        .iter()
        .map(|row| table.price.get(*row as usize).copied().unwrap_or(f64::MAX))
        .collect()
}
