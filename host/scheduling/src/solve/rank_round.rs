//! The one call of the ranking policy in a round: all pools, all offerings, one answer.
//!
//! Nothing here weighs the answer; scores that cannot be used give way to prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;

use super::admission::Admission;
use crate::instance_type::InstanceType;
use crate::pod::PodShape;
use crate::problem::{OfferingKey, Pool, Problem};
use crate::ranking::{
    ClaimView, OfferingTable, PodsSummary, RankAnswer, RankHook, RankRound, Symbols, TableRow,
};

/// The types of all pools, each once, as the table that policies see. Counts of nodes are filled in by the round.
#[derive(Debug)]
pub(super) struct Catalogue {
    admissions: Vec<Arc<Admission>>,
    types: Vec<Arc<InstanceType>>,
    table: OfferingTable,
    rows: Vec<TableRow>,
    symbols: Symbols,
    /// The rows that each pool may buy.
    candidates: Vec<Vec<u32>>,
    /// The first table row of each type, and the end.
    first_row: Vec<usize>,
}

impl Catalogue {
    pub(super) fn new(admissions: Vec<Arc<Admission>>) -> Self {
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
        let (table, rows) = OfferingTable::build(&types, &BTreeMap::new(), &mut symbols);
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
            types,
            table,
            rows,
            symbols,
            candidates,
            first_row,
        }
    }

    /// Whether it is what `new` would make of these.
    pub(super) fn is_of<'a>(&self, admissions: impl Iterator<Item = &'a Arc<Admission>>) -> bool {
        let mut mine = self.admissions.iter();
        let mut theirs = admissions;
        loop {
            match (mine.next(), theirs.next()) {
                (None, None) => return true,
                (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
                _ => return false,
            }
        }
    }

    /// The table with the nodes that run now; its dictionary comes later.
    fn table(&self, in_use: &BTreeMap<OfferingKey, u32>) -> OfferingTable {
        let mut table = self.table.clone();
        if in_use.is_empty() {
            return table;
        }
        // Pools may have several versions of a type.
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, of_type) in self.types.iter().enumerate() {
            by_name.entry(&of_type.name).or_default().push(at);
        }
        for (key, count) in in_use {
            for at in by_name
                .get(key.instance_type.as_str())
                .into_iter()
                .flatten()
            {
                for row in self.rows_of(*at) {
                    let offering = &self.types[*at].offerings[self.rows[row].offering];
                    if offering.zone() == key.zone && offering.capacity_type() == key.capacity_type
                    {
                        table.in_use[row] = *count;
                    }
                }
            }
        }
        table
    }

    fn rows_of(&self, at: usize) -> std::ops::Range<usize> {
        let first = self.first_row[at];
        let of_type = self.rows[first..].iter();
        first..first + of_type.take_while(|row| row.instance_type == at).count()
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
            table_row += before.iter().filter(|o| o.available).count();
            next = row.offering;
            candidates.push(u32::try_from(table_row).unwrap_or(u32::MAX));
        }
    }
    candidates
}

/// One call for all pools. Answers the effective cost of each admitted row, by pool.
pub(super) fn rank(
    problem: &Problem,
    hook: &dyn RankHook,
    round: &[(&Pool, Arc<Admission>)],
    catalogue: &Catalogue,
) -> (Vec<Vec<f64>>, RankAnswer) {
    if round.is_empty() {
        return (Vec::new(), RankAnswer::default());
    }
    let mut symbols = catalogue.symbols.clone();
    let summary = pods_summary(problem);
    let claims = round
        .iter()
        .zip(&catalogue.candidates)
        .map(|((pool, admission), candidates)| ClaimView {
            candidates: candidates.clone(),
            ..pool_view(pool, admission, summary, &mut symbols)
        })
        .collect();
    let options = &problem.options;
    let rank_round = RankRound {
        now_seconds: u64::try_from(options.now.as_second()).unwrap_or(0),
        cluster: options.cluster.clone(),
        decision_id: options.decision_id.clone(),
        seed: options.seed,
        table: OfferingTable {
            symbols: symbols.into_words(),
            ..catalogue.table(&problem.in_use)
        },
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

fn pool_view(
    pool: &Pool,
    admission: &Admission,
    pods: PodsSummary,
    symbols: &mut Symbols,
) -> ClaimView {
    let node_pool = &pool.node_pool;
    let pool_labels = &node_pool.spec.template.metadata.labels;
    ClaimView {
        nodepool: symbols.intern(node_pool.metadata.name.as_deref().unwrap_or("")),
        weight: u32::try_from(node_pool.weight()).unwrap_or(0),
        candidates: Vec::new(),
        requirements: symbols.requirements(&admission.template),
        pods,
        labels: pool_labels
            .iter()
            .map(|(k, v)| (symbols.intern(k), symbols.intern(v)))
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

fn pods_summary(problem: &Problem) -> PodsSummary {
    let mut total = Resources::new();
    let mut summary = PodsSummary {
        max_priority: i32::MIN,
        ..PodsSummary::default()
    };
    // Pods that share a shape are summed up at once; addresses only save work.
    let mut counts: BTreeMap<*const PodShape, (&PodShape, u32)> = BTreeMap::new();
    for pod in &problem.pods {
        let shape = counts.entry(Arc::as_ptr(&pod.shape));
        shape.or_insert((&pod.shape, 0)).1 += 1;
    }
    for (shape, count) in counts.into_values() {
        for (name, amount) in shape.requests.iter() {
            let amount = amount.saturating_mul(i64::from(count));
            total.set(name, total.get(name).saturating_add(amount));
        }
        summary.max_priority = summary.max_priority.max(shape.priority);
        let is_held = shape
            .annotations
            .contains_key(apis::labels::DO_NOT_DISRUPT_ANNOTATION);
        summary.do_not_disrupt += if is_held { count } else { 0 };
    }
    summary.max_priority = summary.max_priority.max(0);
    summary.count = u32::try_from(problem.pods.len()).unwrap_or(u32::MAX);
    summary.cpu_milli = u32::try_from(total.cpu_millis()).unwrap_or(u32::MAX);
    summary.memory_mib = u32::try_from(total.memory_bytes() / (1024 * 1024)).unwrap_or(u32::MAX);
    summary.gpus = u32::try_from(crate::ranking::gpus(&total)).unwrap_or(u32::MAX);
    summary
}
