//! The built-in consolidation policy: Karpenter's rules for the three consolidation policies of a pool.
//!
//! Answers to `disruption/consolidation.go` and `disruption/balanced.go`. Whether a move is possible at
//! all (fit, PDBs, budgets, spot-to-spot) is the host's matter and never looked at here.

use guest_sdk::{
    ConsolidationPolicy, Context, MoveKind, Node, Policy, PoolPart, ProposedMove, Settings,
    Verdict, fixed,
};

/// A move of a Balanced pool passes when its score reaches one over this.
const BALANCED_K: f64 = 2.0;

/// Cheaper moves go ahead; pools that say `WhenEmpty` or `Balanced` hold back.
#[derive(Debug)]
pub struct DefaultConsolidation;

impl Policy for DefaultConsolidation {
    const NAME: &'static str = "default-consolidation";
    const SUMMARY: &'static str =
        "WhenEmpty, WhenEmptyOrUnderutilized and Balanced as Karpenter has them";

    fn configure(_settings: &mut Settings) -> Self {
        Self
    }
}

impl ConsolidationPolicy for DefaultConsolidation {
    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        match proposed.kind() {
            MoveKind::Empty | MoveKind::Drift | MoveKind::StaticDrift | MoveKind::Other => {
                proposed.approve_as_default()
            }
            // Karpenter leaves nodes alone until they expire.
            MoveKind::Expire => Verdict::reject("it has not expired"),
            // A delete may free nodes whose price is unknown: only a replacement must prove a saving.
            MoveKind::Replace if proposed.savings() <= 0.0 => {
                Verdict::reject("the replacement is not cheaper")
            }
            MoveKind::Delete | MoveKind::Replace => {
                if proposed
                    .removed()
                    .any(|node| node.consolidation_policy() == "WhenEmpty")
                {
                    return Verdict::reject("the pool consolidates only empty nodes");
                }
                balanced_refusal(proposed).unwrap_or_else(|| proposed.approve_as_default())
            }
        }
    }
}

guest_sdk::export_policy!(consolidation: DefaultConsolidation);

/// The refusal of the first Balanced pool, in the order of the table, that saves too little for the
/// disruption. A command over several pools splits its savings by their share of the cost.
fn balanced_refusal(proposed: &ProposedMove<'_>) -> Option<Verdict> {
    let is_balanced = |part: &PoolPart<'_>| {
        let mut nodes = part.nodes.iter();
        nodes.any(|node| node.consolidation_policy() == "Balanced")
    };
    let parts = proposed.by_pool().into_iter();
    parts.filter(is_balanced).find_map(|part| {
        let score = balanced_score(&part);
        (score < 1.0 / BALANCED_K).then(|| {
            let pool = part.nodes.first().map_or("", Node::node_pool);
            let (score, least) = (fixed(score, 3), fixed(1.0 / BALANCED_K, 3));
            Verdict::reject(
                [
                    "balanced score ",
                    &score,
                    " of NodePool ",
                    pool,
                    " is below ",
                    &least,
                ]
                .concat(),
            )
        })
    })
}

/// Share of the pool's cost saved, over share of the pool's disruption caused.
fn balanced_score(part: &PoolPart<'_>) -> f64 {
    let savings = part.savings;
    let pool = part.nodes.first().and_then(Node::pool);
    let totals = pool.map(|it| (it.effective_price(), it.disruption_cost()));
    let (cost_total, disruption_total) = totals.unwrap_or_default();
    if savings <= 0.0 || cost_total <= 0.0 || disruption_total <= 0.0 {
        return 0.0;
    }
    let fraction = part.disruption_cost() / disruption_total;
    if fraction <= 0.0 {
        f64::MAX
    } else {
        savings / cost_total / fraction
    }
}

#[cfg(test)]
mod tests;
