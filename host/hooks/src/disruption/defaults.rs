//! The built-in judgement in native code: the last resort of the policy host, and the tests' stand-in.
//!
//! It must agree with the default policy components byte for byte. Answers to Karpenter's
//! `disruption/consolidation.go`, `disruption/balanced.go` and `NodePool.MustGetAllowedDisruptions`.

use super::{
    AllowAnswer, Allowance, BudgetReason, BudgetRound, BudgetsHook, ConsolidationHook,
    ConsolidationRound, JudgeAnswer, Move, MoveKind, NodeTable, OrderAnswer, Verdict,
    VerdictDecision,
};
use crate::columns::{at, index};

/// The declared budgets, nothing else.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeclaredBudgets;

impl BudgetsHook for DeclaredBudgets {
    fn allow(&self, round: &BudgetRound) -> AllowAnswer {
        let mut answer = AllowAnswer::default();
        for (index, pool) in (0_u32..).zip(&round.pools) {
            for reason in BudgetReason::JUDGED {
                answer.items.push(Allowance {
                    pool: index,
                    reason,
                    allowed: pool.declared_allowed(reason),
                    why: "declared budgets".to_owned(),
                    replaces_declared: false,
                });
            }
        }
        answer
    }
}

/// Karpenter's rules: savings ratio first, every cheaper move approved, Balanced pools scored.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultConsolidation;

impl ConsolidationHook for DefaultConsolidation {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        let nodes = &round.nodes;
        let keys = nodes
            .effective_price
            .iter()
            .zip(&nodes.disruption_cost)
            .map(|(&price, &cost)| {
                // The savings ratio descending, as a key ascending that cannot be negative.
                if price > 0.0 {
                    (cost / price).max(0.0)
                } else {
                    f64::MAX
                }
            })
            .collect();
        OrderAnswer {
            keys,
            uses: Vec::new(),
        }
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        JudgeAnswer {
            verdicts: moves.iter().map(|it| verdict(round, it)).collect(),
            uses: Vec::new(),
        }
    }
}

fn verdict(round: &ConsolidationRound, moved: &Move) -> Verdict {
    let nodes = &round.nodes;
    let disruption: f64 = moved
        .remove
        .iter()
        .map(|&row| at(&nodes.disruption_cost, row))
        .sum();
    let savings = moved.effective_before - moved.effective_after;
    let score = if disruption > 0.0 {
        savings / disruption
    } else {
        savings
    };
    match moved.kind {
        MoveKind::Empty | MoveKind::Drift | MoveKind::StaticDrift => {
            approve(score, "not a matter of savings")
        }
        // Karpenter leaves nodes alone until they expire.
        MoveKind::Expire => reject("it has not expired"),
        MoveKind::Delete | MoveKind::Replace => {
            // A delete frees nodes whose price may be unknown, so only a replacement must prove a saving.
            if moved.kind == MoveKind::Replace && savings <= 0.0 {
                return reject("the replacement is not cheaper");
            }
            match moved
                .remove
                .iter()
                .find(|&&row| policy_of(nodes, row) == "WhenEmpty")
            {
                Some(_) => reject("the pool consolidates only empty nodes"),
                None => balanced(round, moved).unwrap_or_else(|| approve(score, "saves cost")),
            }
        }
    }
}

/// The verdict of the Balanced pools among the removed nodes; `None` when all of them approve.
fn balanced(round: &ConsolidationRound, moved: &Move) -> Option<Verdict> {
    let mut scores = balanced_scores(round, moved).into_iter();
    let PoolScore { pool, score: found } = scores.find(|it| !it.score.passes())?;
    Some(reject(&format!(
        "balanced score {:.3} of NodePool {} is below {:.3}",
        found.score,
        round.nodes.symbol(pool),
        BalancedScore::THRESHOLD,
    )))
}

/// Sums over all nodes of a pool: effective cost, USD an hour, and disruption cost.
#[derive(Clone, Copy, Default)]
struct PoolTotals {
    cost: f64,
    disruption: f64,
}

/// How a move of a Balanced pool stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BalancedScore {
    /// Share of the pool's cost saved, over share of the pool's disruption caused.
    pub score: f64,
    /// Share of the pool's cost saved.
    pub savings_share: f64,
    /// Share of the pool's disruption caused.
    pub disruption_share: f64,
}

impl BalancedScore {
    /// How many times the share it disturbs a move may cost for the share it saves.
    pub const K: f64 = 2.0;
    /// A move passes from here on.
    pub const THRESHOLD: f64 = 1.0 / Self::K;

    /// Whether the move pays.
    pub fn passes(&self) -> bool {
        self.score >= Self::THRESHOLD
    }

    /// `totals` are those of the pool.
    fn of(savings: f64, disruption: f64, totals: PoolTotals) -> Self {
        let PoolTotals {
            cost: cost_total,
            disruption: disruption_total,
        } = totals;
        let share = |part: f64, total: f64| if total > 0.0 { part / total } else { 0.0 };
        let (savings_share, disruption_share) = (
            share(savings, cost_total),
            share(disruption, disruption_total),
        );
        let score = if savings <= 0.0 || cost_total <= 0.0 || disruption_total <= 0.0 {
            0.0
        } else if disruption_share <= 0.0 {
            f64::MAX
        } else {
            savings_share / disruption_share
        };
        Self {
            score,
            savings_share,
            disruption_share,
        }
    }
}

/// How a move stands with one Balanced pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolScore {
    /// Name of the pool (sym).
    pub pool: u32,
    /// Its score.
    pub score: BalancedScore,
}

/// The scores of the Balanced pools among the removed nodes. What a move over several pools saves is split by what each
/// pool's nodes cost.
pub fn balanced_scores(round: &ConsolidationRound, moved: &Move) -> Vec<PoolScore> {
    let nodes = &round.nodes;
    let balanced = moved.remove.iter().copied();
    let balanced = balanced.filter(|&row| policy_of(nodes, row) == "Balanced");
    let mut pools: Vec<u32> = balanced.map(|row| at(&nodes.nodepool, row)).collect();
    pools.sort_unstable();
    pools.dedup();
    let score = |pool: u32| {
        let rows = moved.remove.iter().copied();
        let rows: Vec<u32> = rows
            .filter(|&row| at(&nodes.nodepool, row) == pool)
            .collect();
        let sum = |column: &[f64]| rows.iter().map(|&row| at(column, row)).sum::<f64>();
        let (source, disruption) = (sum(&nodes.effective_price), sum(&nodes.disruption_cost));
        let share = if moved.effective_before > 0.0 {
            source / moved.effective_before
        } else {
            0.0
        };
        let view = round.pools.iter().find(|it| it.name == pool);
        let totals = view.map_or_else(PoolTotals::default, |it| PoolTotals {
            cost: it.effective_price,
            disruption: it.disruption_cost,
        });
        let savings = moved.effective_before - moved.effective_after;
        BalancedScore::of(savings * share, disruption, totals)
    };
    let scored = pools.into_iter().map(|pool| PoolScore {
        pool,
        score: score(pool),
    });
    scored.collect()
}

fn approve(score: f64, reason: &str) -> Verdict {
    Verdict {
        decision: VerdictDecision::Approve,
        score,
        reason: reason.to_owned(),
        retry_after_seconds: 0,
    }
}

fn reject(reason: &str) -> Verdict {
    Verdict {
        decision: VerdictDecision::Reject,
        score: 0.0,
        reason: reason.to_owned(),
        retry_after_seconds: 0,
    }
}

fn policy_of(nodes: &NodeTable, row: u32) -> &str {
    let policy = nodes.consolidation_policy.get(index(row));
    policy.map_or("", |it| nodes.symbol(*it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disruption::{NO_CAPACITY_TYPE, NO_SYMBOL, PoolView};

    fn ten_equal_nodes(policy: &str) -> ConsolidationRound {
        let nodes = NodeTable {
            symbols: vec!["web".to_owned(), policy.to_owned()],
            name: vec![0; 10],
            nodepool: vec![0; 10],
            price: vec![1.0; 10],
            effective_price: vec![1.0; 10],
            consolidation_policy: vec![1; 10],
            disruption_cost: vec![5.0; 10],
            ..NodeTable::default()
        };
        let pool = PoolView {
            name: 0,
            nodes: 10,
            price: 10.0,
            effective_price: 10.0,
            disruption_cost: 50.0,
            ..PoolView::default()
        };
        ConsolidationRound {
            nodes,
            pools: vec![pool],
            ..ConsolidationRound::default()
        }
    }

    fn one_for(cost_after: f64) -> Move {
        Move {
            kind: if cost_after > 0.0 {
                MoveKind::Replace
            } else {
                MoveKind::Delete
            },
            remove: vec![0],
            cost_before: 1.0,
            cost_after,
            effective_before: 1.0,
            effective_after: cost_after,
            pods_moved: 4,
            singletons_moved: 0,
            max_priority: 0,
            new_nodes: u32::from(cost_after > 0.0),
            replacement_type: NO_SYMBOL,
            replacement_zone: NO_SYMBOL,
            replacement_capacity_type: NO_CAPACITY_TYPE,
            labels: Vec::new(),
        }
    }

    #[test]
    fn each_policy_approves_what_it_should() {
        use VerdictDecision::{Approve, Reject};
        for (policy, cost_after, expected) in [
            ("Balanced", 0.0, Approve),
            ("Balanced", 0.6, Reject),
            ("Balanced", 0.5, Approve),
            ("WhenEmptyOrUnderutilized", 0.6, Approve),
            ("WhenEmptyOrUnderutilized", 0.99, Approve),
            ("WhenEmptyOrUnderutilized", 1.0, Reject),
            ("WhenEmpty", 0.0, Reject),
        ] {
            let answer =
                DefaultConsolidation.judge(&ten_equal_nodes(policy), &[one_for(cost_after)]);
            assert_eq!(
                answer.verdicts[0].decision, expected,
                "{policy} {cost_after}"
            );
        }
    }

    #[test]
    fn the_dearer_node_per_disruption_comes_first() {
        let round = ConsolidationRound {
            nodes: NodeTable {
                effective_price: vec![1.0, 0.3, 0.0],
                disruption_cost: vec![10.0, 2.0, 1.0],
                ..NodeTable::default()
            },
            ..ConsolidationRound::default()
        };
        let keys = DefaultConsolidation.order(&round).keys;
        assert!(keys[1] < keys[0] && keys[0] < keys[2]);
    }
}
