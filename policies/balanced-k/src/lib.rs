//! A consolidation policy: Balanced for every pool, with the balance of your choice.
//!
//! A move passes when its share of the pool's cost, saved, times `k` reaches its share of the pool's disruption; of a
//! move over several pools each must, by its part of it. Karpenter's `Balanced` has a `k` of 2; 1 asks for as much
//! saving as disruption.

use guest_sdk::{
    ConsolidationPolicy, Context, Policy, PoolPart, ProposedMove, Settings, Verdict, fixed,
};

/// Weighs savings against disruption.
#[derive(Debug)]
pub struct BalancedK {
    k: f64,
}

impl Policy for BalancedK {
    const NAME: &'static str = "balanced-k";
    const SUMMARY: &'static str = "Balanced for every pool, with a k of your choice";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"k":{"type":"number","minimum":0.01,"maximum":100,"default":2,"description":"how much disruption a unit of saving is worth"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            k: settings.number("k", 2.0, 0.01..=100.0),
        }
    }
}

impl ConsolidationPolicy for BalancedK {
    fn verdict(&self, proposed: &ProposedMove<'_>, _context: &Context) -> Verdict {
        if let Some(objection) = proposed.objection() {
            return Verdict::reject(objection);
        }
        if !proposed.is_for_savings() {
            return proposed.approve_as_default();
        }
        let parts = proposed.by_pool();
        let refusal = parts.iter().find_map(|part| self.refusal(part));
        let score = proposed.savings_per_disruption();
        refusal.unwrap_or_else(|| Verdict::approve(score, "saves enough for what it disrupts"))
    }
}

impl BalancedK {
    fn refusal(&self, part: &PoolPart<'_>) -> Option<Verdict> {
        let pool = part.nodes.first()?.pool();
        let (cost, disruption) = pool.map_or((0.0, 0.0), |pool| {
            (pool.effective_price(), pool.disruption_cost())
        });
        let saved = share(part.savings, cost);
        let disrupted = share(part.disruption_cost(), disruption);
        (saved * self.k < disrupted).then(|| {
            Verdict::reject(
                [
                    "saves ",
                    &fixed(saved, 3),
                    " of the pool's cost for ",
                    &fixed(disrupted, 3),
                    " of its disruption",
                ]
                .concat(),
            )
        })
    }
}

/// A part of a total; nothing of a pool that costs nothing.
fn share(part: f64, total: f64) -> f64 {
    if total > 0.0 { part / total } else { 0.0 }
}

guest_sdk::export_policy!(consolidation: BalancedK);

#[cfg(test)]
mod tests {
    use super::BalancedK;
    use guest_sdk::testing::{ConsolidationQuestion, Harness, NodeRow, PoolRow, proposed};
    use guest_sdk::{Decision, MoveKind};

    #[test]
    fn a_larger_k_takes_smaller_savings() {
        // A tenth of the pool's cost and a tenth of its disruption.
        for (config, cost_after, expected) in [
            ("", 0.5, Decision::Approve),
            ("", 0.6, Decision::Reject),
            (r#"{"k": 1}"#, 0.1, Decision::Reject),
            (r#"{"k": 1}"#, 0.0, Decision::Approve),
            (r#"{"k": 5}"#, 0.75, Decision::Approve),
        ] {
            let policy = Harness::<BalancedK>::new(config).unwrap();
            let verdict = policy.verdict(&ConsolidationQuestion {
                nodes: &[NodeRow::default()],
                pools: &[PoolRow::default()],
                moves: &[proposed(MoveKind::Replace, &[0], 1.0, cost_after)],
                ..ConsolidationQuestion::default()
            });
            assert_eq!(
                verdict.decision, expected,
                "{config} {cost_after}: {}",
                verdict.reason
            );
        }
    }

    #[test]
    fn each_pool_of_a_move_answers_for_its_part() {
        let of = |node_pool, price, disruption_cost| NodeRow {
            node_pool,
            price,
            disruption_cost,
            ..NodeRow::default()
        };
        // Of each pool a tenth of its cost goes.
        let pool = |name| PoolRow {
            name,
            ..PoolRow::default()
        };
        for (cheap, dear, expected) in [
            (5.0, 5.0, Decision::Approve),
            // By the totals of either pool the whole would pass.
            (1.0, 10.0, Decision::Reject),
            (10.0, 1.0, Decision::Reject),
        ] {
            let verdict = Harness::<BalancedK>::new("")
                .unwrap()
                .verdict(&ConsolidationQuestion {
                    nodes: &[of("a", 1.0, cheap), of("b", 1.0, dear)],
                    pools: &[pool("a"), pool("b")],
                    moves: &[proposed(MoveKind::Replace, &[0, 1], 2.0, 0.5)],
                    ..ConsolidationQuestion::default()
                });
            assert_eq!(
                verdict.decision, expected,
                "{cheap} {dear}: {}",
                verdict.reason
            );
        }
    }
}
