//! The one call of the ranking policy in a solve: all pools, all offerings, one answer.
//!
//! Nothing here weighs the answer; scores that cannot be used give way to prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::resources::Resources;

use super::setup::Admitted;
use crate::instance_type::InstanceType;
use crate::problem::Problem;
use crate::ranking::{
    ClaimView, OfferingTable, PodsSummary, RankAnswer, RankHook, RankRound, Symbols, TableRow,
};

/// The types of all pools, each once.
#[derive(Default)]
struct Catalogue {
    types: Vec<Arc<InstanceType>>,
    /// Pools of one class share their types; identity only saves work, the order of first sight decides.
    known: BTreeMap<*const InstanceType, usize>,
    /// The first table row of each type.
    first_row: Vec<usize>,
}

impl Catalogue {
    fn collect(round: &[Admitted<'_>]) -> Self {
        let mut catalogue = Self::default();
        for admitted in round {
            for (type_index, _) in &admitted.rows {
                let instance_type = &admitted.pool.instance_types[*type_index];
                let types = &mut catalogue.types;
                catalogue
                    .known
                    .entry(Arc::as_ptr(instance_type))
                    .or_insert_with(|| {
                        types.push(Arc::clone(instance_type));
                        types.len() - 1
                    });
            }
        }
        catalogue
    }

    fn locate(&mut self, rows: &[TableRow]) {
        self.first_row = vec![0; self.types.len()];
        for (index, row) in rows.iter().enumerate().rev() {
            self.first_row[row.instance_type] = index;
        }
    }

    fn row_of(&self, instance_type: &Arc<InstanceType>, offering: usize) -> u32 {
        let at = self
            .known
            .get(&Arc::as_ptr(instance_type))
            .copied()
            .unwrap_or(0);
        let before = instance_type.offerings[..offering]
            .iter()
            .filter(|o| o.available)
            .count();
        u32::try_from(self.first_row[at] + before).unwrap_or(u32::MAX)
    }
}

/// One call for all pools. Answers the effective cost of each admitted row, by pool.
pub(super) fn rank(
    problem: &Problem,
    hook: &dyn RankHook,
    round: &[Admitted<'_>],
) -> (Vec<Vec<f64>>, RankAnswer) {
    if round.is_empty() {
        return (Vec::new(), RankAnswer::default());
    }
    let mut catalogue = Catalogue::collect(round);
    let mut symbols = Symbols::default();
    let (table, rows) = OfferingTable::build(&catalogue.types, &problem.in_use, &mut symbols);
    catalogue.locate(&rows);
    let summary = pods_summary(problem);
    let view = |admitted: &Admitted<'_>| pool_view(admitted, summary, &catalogue, &mut symbols);
    let claims = round.iter().map(view).collect();
    let options = &problem.options;
    let rank_round = RankRound {
        now_seconds: u64::try_from(options.now.as_second()).unwrap_or(0),
        cluster: options.cluster.clone(),
        decision_id: options.decision_id.clone(),
        seed: options.seed,
        table: OfferingTable {
            symbols: symbols.into_words(),
            ..table
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
    admitted: &Admitted<'_>,
    pods: PodsSummary,
    catalogue: &Catalogue,
    symbols: &mut Symbols,
) -> ClaimView {
    let node_pool = &admitted.pool.node_pool;
    let pool_labels = &node_pool.spec.template.metadata.labels;
    let row = |(of_type, offering): &(usize, usize)| {
        catalogue.row_of(&admitted.pool.instance_types[*of_type], *offering)
    };
    ClaimView {
        nodepool: symbols.intern(node_pool.metadata.name.as_deref().unwrap_or("")),
        weight: u32::try_from(node_pool.weight()).unwrap_or(0),
        candidates: admitted.rows.iter().map(row).collect(),
        requirements: symbols.requirements(&admitted.template),
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
    for pod in &problem.pods {
        total.add_assign(&pod.shape.requests);
        summary.max_priority = summary.max_priority.max(pod.shape.priority);
        let is_held = pod
            .shape
            .annotations
            .contains_key(apis::labels::DO_NOT_DISRUPT_ANNOTATION);
        summary.do_not_disrupt += u32::from(is_held);
    }
    summary.max_priority = summary.max_priority.max(0);
    summary.count = u32::try_from(problem.pods.len()).unwrap_or(u32::MAX);
    summary.cpu_milli = u32::try_from(total.cpu_millis()).unwrap_or(u32::MAX);
    summary.memory_mib = u32::try_from(total.memory_bytes() / (1024 * 1024)).unwrap_or(u32::MAX);
    summary.gpus = u32::try_from(crate::ranking::gpus(&total)).unwrap_or(u32::MAX);
    summary
}
