//! Consolidation: among the policies for a node's pool any reject wins, then hold; scores multiply.

use std::sync::Arc;

use disruption::hooks::{
    ConsolidationHook, ConsolidationRound, DefaultConsolidation, JudgeAnswer, Move, NodeTable,
    OrderAnswer, PolicyUse, Verdict, VerdictDecision,
};

use super::add_use;
use crate::binding::OnFailure;
use crate::host::{Inner, PolicyHost, Round};
use crate::limits::Kind;
use crate::records::ShadowDifference;
use crate::registry::Bound;

/// After a failure under `on-failure: hold`, nothing is asked again for so long.
const HOLD_SECONDS: u32 = 60;

impl ConsolidationHook for PolicyHost {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        let host = &self.inner;
        let nodes = &round.nodes;
        let mut uses = Vec::new();
        let mut keys: Vec<Option<f64>> = vec![None; nodes.len()];
        let mut fallback = Fallback::default();
        for bound in deciding(host, round) {
            let (rows, is_all) = rows_for(&bound, nodes);
            if rows.is_empty() && !is_all {
                continue;
            }
            let called = host.ask_order(&bound, round);
            add_use(&mut uses, host.note(&bound, at_round(round), &called, None));
            let answer = match (called.result, bound.on_failure) {
                (Ok(answer), _) => answer,
                (Err(_), OnFailure::Hold) => vec![-1.0; nodes.len()],
                (Err(_), OnFailure::Default) => fallback.order(host, round, &mut uses).to_vec(),
            };
            for row in rows {
                if let (Some(key), Some(&answer)) = (keys.get_mut(row), answer.get(row)) {
                    *key = Some(key.map_or(answer, |earlier| chained_key(earlier, answer)));
                }
            }
        }
        if keys.iter().any(Option::is_none) || keys.is_empty() {
            for (key, &default) in keys.iter_mut().zip(fallback.order(host, round, &mut uses)) {
                key.get_or_insert(default);
            }
        }
        OrderAnswer {
            keys: keys.into_iter().map(|key| key.unwrap_or(-1.0)).collect(),
            uses,
        }
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let host = &self.inner;
        let mut judged = Judged {
            host,
            round,
            moves,
            verdicts: vec![None; moves.len()],
            uses: Vec::new(),
            fallback: Fallback::default(),
        };
        for bound in deciding(host, round) {
            judged.link(&bound);
        }
        let verdicts = judged.finish();
        for shadow in host.active().shadows(Kind::Consolidation) {
            watch(host, round, moves, (&shadow, &verdicts));
        }
        JudgeAnswer {
            verdicts,
            uses: judged.uses,
        }
    }
}

fn deciding(host: &Inner, round: &ConsolidationRound) -> Vec<Arc<Bound>> {
    host.active()
        .deciding(Kind::Consolidation, &round.context.decision_id)
}

fn at_round(round: &ConsolidationRound) -> Round<'_> {
    Round {
        kind: Kind::Consolidation,
        decision_id: &round.context.decision_id,
        now_seconds: round.context.now_seconds,
    }
}

/// The rows of the pools that a policy is for, and whether it is for every pool there may be.
fn rows_for(bound: &Bound, nodes: &NodeTable) -> (Vec<usize>, bool) {
    let rows = nodes
        .nodepool
        .iter()
        .enumerate()
        .filter(|(_, pool)| bound.is_for(nodes.symbol(**pool)))
        .map(|(row, _)| row)
        .collect();
    (rows, bound.node_pools.is_empty() && nodes.is_empty())
}

/// Whether a policy is for any of the pools that a move takes nodes from.
fn is_for_move(bound: &Bound, nodes: &NodeTable, it: &Move) -> bool {
    bound.node_pools.is_empty()
        || it.remove.iter().any(|&row| {
            usize::try_from(row)
                .ok()
                .and_then(|row| nodes.nodepool.get(row))
                .is_some_and(|&pool| bound.is_for(nodes.symbol(pool)))
        })
}

/// A skip stays one; otherwise the keys multiply.
fn chained_key(earlier: f64, later: f64) -> f64 {
    if earlier < 0.0 || later < 0.0 {
        -1.0
    } else {
        (earlier * later).min(f64::MAX)
    }
}

struct Judged<'a> {
    host: &'a Inner,
    round: &'a ConsolidationRound,
    moves: &'a [Move],
    verdicts: Vec<Option<Verdict>>,
    uses: Vec<PolicyUse>,
    fallback: Fallback,
}

impl Judged<'_> {
    fn link(&mut self, bound: &Bound) {
        let nodes = &self.round.nodes;
        let concerned: Vec<usize> = (0..self.moves.len())
            .filter(|&it| {
                self.moves
                    .get(it)
                    .is_some_and(|it| is_for_move(bound, nodes, it))
            })
            .collect();
        if concerned.is_empty() {
            return;
        }
        let called = self.host.ask_judge(bound, self.round, self.moves);
        let policy_use = self.host.note(bound, at_round(self.round), &called, None);
        add_use(&mut self.uses, policy_use);
        let answer = match (called.result, bound.on_failure) {
            (Ok(answer), _) => answer,
            (Err(_), OnFailure::Hold) => vec![held(&bound.name); self.moves.len()],
            (Err(_), OnFailure::Default) => self
                .fallback
                .judge(self.host, (self.round, self.moves), &mut self.uses)
                .to_vec(),
        };
        for (index, verdict) in answer.into_iter().enumerate() {
            if !concerned.contains(&index) {
                continue;
            }
            if let Some(slot) = self.verdicts.get_mut(index) {
                *slot = Some(match slot.take() {
                    Some(earlier) => chained_verdict(earlier, verdict),
                    None => verdict,
                });
            }
        }
    }

    fn finish(&mut self) -> Vec<Verdict> {
        if self.verdicts.iter().any(Option::is_none) {
            let defaults = self
                .fallback
                .judge(self.host, (self.round, self.moves), &mut self.uses);
            for (verdict, default) in self.verdicts.iter_mut().zip(defaults) {
                verdict.get_or_insert_with(|| default.clone());
            }
        }
        std::mem::take(&mut self.verdicts)
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Any reject wins, then hold; approvals multiply their scores.
fn chained_verdict(earlier: Verdict, later: Verdict) -> Verdict {
    use VerdictDecision::{Approve, Hold, Reject};
    match (earlier.decision, later.decision) {
        (Reject, Approve | Hold | Reject) | (Hold, Approve) => earlier,
        (Approve | Hold, Reject) | (Approve, Hold) => later,
        (Hold, Hold) => Verdict {
            retry_after_seconds: earlier.retry_after_seconds.max(later.retry_after_seconds),
            ..earlier
        },
        (Approve, Approve) => Verdict {
            score: (earlier.score * later.score).clamp(f64::MIN, f64::MAX),
            reason: format!("{}; {}", earlier.reason, later.reason),
            ..later
        },
    }
}

fn held(name: &str) -> Verdict {
    Verdict {
        decision: VerdictDecision::Hold,
        score: 0.0,
        reason: format!("policy {name} failed, and its binding says to hold"),
        retry_after_seconds: HOLD_SECONDS,
    }
}

/// The default's answer, asked for at most once a round.
#[derive(Default)]
struct Fallback {
    keys: Option<Vec<f64>>,
    verdicts: Option<Vec<Verdict>>,
}

impl Fallback {
    fn order(
        &mut self,
        host: &Inner,
        round: &ConsolidationRound,
        uses: &mut Vec<PolicyUse>,
    ) -> &[f64] {
        self.keys.get_or_insert_with(|| {
            let asked = host.default_of(Kind::Consolidation).and_then(|default| {
                let called = host.ask_order(&default, round);
                add_use(uses, host.note(&default, at_round(round), &called, None));
                called.result.ok()
            });
            asked.unwrap_or_else(|| DefaultConsolidation.order(round).keys)
        })
    }

    fn judge(
        &mut self,
        host: &Inner,
        (round, moves): (&ConsolidationRound, &[Move]),
        uses: &mut Vec<PolicyUse>,
    ) -> &[Verdict] {
        self.verdicts.get_or_insert_with(|| {
            let asked = host.default_of(Kind::Consolidation).and_then(|default| {
                let called = host.ask_judge(&default, round, moves);
                add_use(uses, host.note(&default, at_round(round), &called, None));
                called.result.ok()
            });
            asked.unwrap_or_else(|| DefaultConsolidation.judge(round, moves).verdicts)
        })
    }
}

/// Asks a policy that only watches and notes how many of its verdicts differ.
fn watch(
    host: &Inner,
    round: &ConsolidationRound,
    moves: &[Move],
    (shadow, enforced): (&Bound, &[Verdict]),
) {
    let called = host.ask_judge(shadow, round, moves);
    let difference = called.result.as_ref().ok().map(|answers| {
        let mut difference = ShadowDifference::default();
        for ((it, ours), theirs) in moves.iter().zip(enforced).zip(answers) {
            if !is_for_move(shadow, &round.nodes, it) || ours.decision == theirs.decision {
                continue;
            }
            difference.disagreements += 1;
            let savings = it.cost_before - it.cost_after;
            difference.usd_per_hour += match (ours.decision, theirs.decision) {
                (VerdictDecision::Approve, _) => savings,
                (_, VerdictDecision::Approve) => -savings,
                _ => 0.0,
            };
        }
        difference
    });
    host.note(shadow, at_round(round), &called, difference);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(decision: VerdictDecision, score: f64) -> Verdict {
        Verdict {
            decision,
            score,
            reason: "r".to_owned(),
            retry_after_seconds: 0,
        }
    }

    #[test]
    fn any_reject_wins_then_hold_and_scores_multiply() {
        use VerdictDecision::{Approve, Hold, Reject};
        for (earlier, later, expected) in [
            (Approve, Approve, Approve),
            (Approve, Hold, Hold),
            (Hold, Approve, Hold),
            (Hold, Reject, Reject),
            (Reject, Approve, Reject),
        ] {
            let chained = chained_verdict(verdict(earlier, 2.0), verdict(later, 3.0));
            assert_eq!(chained.decision, expected, "{earlier:?} {later:?}");
            if expected == Approve {
                assert!((chained.score - 6.0).abs() < 1e-12);
            }
        }
        assert!(chained_key(-1.0, 2.0) < 0.0 && chained_key(f64::MAX, 2.0).is_finite());
    }
}
