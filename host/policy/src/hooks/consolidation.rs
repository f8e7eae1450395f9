//! Consolidation: among the policies for a node's pool any reject wins, then hold; scores multiply.
//!
//! No policy allows here what Karpenter's rules refuse: only what they let through is asked about.

mod shadowed;

use hooks::binding::OnFailure;
use hooks::columns::index;
use hooks::disruption::{
    ConsolidationHook, ConsolidationRound, DefaultConsolidation, JudgeAnswer, Move, MoveKind,
    Needs, NodeTable, OrderAnswer, PolicyUse, Verdict, VerdictDecision,
};
use hooks::policy_use::PolicyKind;

use super::add_use;
use crate::active_policy::ActivePolicy;
use crate::host::{HostState, PolicyHost, RoundRef};
use crate::interface::exchange::JudgeAsk;
use crate::needs::Need;
use shadowed::{ShadowedMoves, watch_order};

/// After a failure under `on-failure: hold`, nothing is asked again for so long.
const HOLD_SECONDS: u32 = 60;

impl ConsolidationHook for PolicyHost {
    fn order(&self, round: &ConsolidationRound) -> OrderAnswer {
        let host = &self.inner;
        let active = host.active();
        let nodes = &round.nodes;
        let mut uses = Vec::new();
        let mut keys: Vec<Option<f64>> = vec![None; nodes.len()];
        let mut fallback = Fallback::default();
        for policy in active.deciding(PolicyKind::Consolidation) {
            let rows = rows_for(&policy, nodes);
            // A round without nodes is a matter for those alone that are for every pool there may be.
            let is_asked_of_nothing = nodes.is_empty() && policy.is_for_all();
            if rows.is_empty() && !is_asked_of_nothing {
                continue;
            }
            let called = host.ask_order(&policy, round);
            add_use(
                &mut uses,
                host.note(&policy, at_round(round), &called, None),
            );
            let answer = match (called.result, policy.on_failure) {
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
        let decided = keys.clone();
        if keys.iter().any(Option::is_none) || keys.is_empty() {
            for (key, &default) in keys.iter_mut().zip(fallback.order(host, round, &mut uses)) {
                key.get_or_insert(default);
            }
        }
        let keys: Vec<f64> = keys.into_iter().map(|key| key.unwrap_or(-1.0)).collect();
        for shadow in active.shadows(PolicyKind::Consolidation) {
            watch_order(host, round, &shadow, &keys, &decided);
        }
        OrderAnswer { keys, uses }
    }

    fn judge(&self, round: &ConsolidationRound, moves: &[Move]) -> JudgeAnswer {
        let host = &self.inner;
        let active = host.active();
        let mut judged = MoveChain {
            host,
            ask: JudgeAsk { round, moves },
            verdicts: vec![None; moves.len()],
            uses: Vec::new(),
            fallback: Fallback::default(),
        };
        for policy in active.deciding(PolicyKind::Consolidation) {
            judged.link(&policy);
        }
        let shadows = active.shadows(PolicyKind::Consolidation);
        let decided = match shadows.as_slice() {
            [] => Vec::new(),
            [_, ..] => judged.verdicts.clone(),
        };
        let verdicts = judged.finish();
        for shadow in shadows {
            let watched = ShadowedMoves {
                host,
                round,
                moves,
                verdicts: &verdicts,
                decided: &decided,
            };
            watched.by(&shadow);
        }
        JudgeAnswer {
            verdicts,
            uses: judged.uses,
        }
    }

    fn needs(&self) -> Needs {
        self.inner.active().needs(PolicyKind::Consolidation)
    }

    fn identity(&self) -> String {
        self.inner
            .active()
            .identity(PolicyKind::Consolidation)
            .to_owned()
    }
}

fn at_round(round: &ConsolidationRound) -> RoundRef<'_> {
    RoundRef {
        kind: PolicyKind::Consolidation,
        decision_id: &round.context.decision_id,
        now_seconds: round.context.now_seconds,
    }
}

/// The rows of the pools that a policy is for.
fn rows_for(policy: &ActivePolicy, nodes: &NodeTable) -> Vec<usize> {
    nodes
        .nodepool
        .iter()
        .enumerate()
        .filter(|(_, pool)| policy.is_for(nodes.symbol(**pool)))
        .map(|(row, _)| row)
        .collect()
}

/// Whether a policy is for any of the pools that a move takes nodes from. Of a renewal before its time only those may
/// speak that asked for such moves: to the others it would look like drift.
fn is_for_move(policy: &ActivePolicy, nodes: &NodeTable, moved: &Move) -> bool {
    if moved.kind == MoveKind::Expire && !policy.needs.has(Need::Expire) {
        return false;
    }
    policy.is_for_all()
        || moved.remove.iter().any(|&row| {
            let pool = nodes.nodepool.get(index(row));
            pool.is_some_and(|&pool| policy.is_for(nodes.symbol(pool)))
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

struct MoveChain<'a> {
    host: &'a HostState,
    ask: JudgeAsk<'a>,
    verdicts: Vec<Option<Verdict>>,
    uses: Vec<PolicyUse>,
    fallback: Fallback,
}

impl MoveChain<'_> {
    fn link(&mut self, policy: &ActivePolicy) {
        let JudgeAsk { round, moves } = self.ask;
        let nodes = &round.nodes;
        let concerned: Vec<usize> = (0..moves.len())
            .filter(|&it| {
                moves
                    .get(it)
                    .is_some_and(|it| is_for_move(policy, nodes, it))
            })
            .collect();
        if concerned.is_empty() {
            return;
        }
        let called = self.host.ask_judge(policy, round, moves);
        let policy_use = self.host.note(policy, at_round(round), &called, None);
        add_use(&mut self.uses, policy_use);
        let answer = match (called.result, policy.on_failure) {
            (Ok(answer), _) => answer,
            (Err(_), OnFailure::Hold) => vec![held(&policy.name); moves.len()],
            (Err(_), OnFailure::Default) => self
                .fallback
                .judge(self.host, self.ask, &mut self.uses)
                .to_vec(),
        };
        let mut stopped = 0;
        for (index, verdict) in answer.into_iter().enumerate() {
            if !concerned.contains(&index) {
                continue;
            }
            if let Some(slot) = self.verdicts.get_mut(index) {
                let goes_on = |it: &Verdict| it.decision == VerdictDecision::Approve;
                stopped += u32::from(slot.as_ref().is_none_or(goes_on) && !goes_on(&verdict));
                *slot = Some(match slot.take() {
                    Some(earlier) => chained_verdict(earlier, verdict),
                    None => verdict,
                });
            }
        }
        if stopped > 0 {
            let all = concerned.len();
            let text = format!("{stopped} of {all} moves that nobody before it had stopped");
            self.host.note_change(policy, at_round(round), text);
        }
    }

    fn finish(&mut self) -> Vec<Verdict> {
        if self.verdicts.iter().any(Option::is_none) {
            let defaults = self.fallback.judge(self.host, self.ask, &mut self.uses);
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
            reason: both_reasons(&earlier.reason, &later.reason),
            ..later
        },
    }
}

/// Both reasons, or the one of the policy that gave any.
fn both_reasons(earlier: &str, later: &str) -> String {
    let given = [earlier, later].into_iter().filter(|it| !it.is_empty());
    given.collect::<Vec<_>>().join("; ")
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
        host: &HostState,
        round: &ConsolidationRound,
        uses: &mut Vec<PolicyUse>,
    ) -> &[f64] {
        self.keys.get_or_insert_with(|| {
            let asked = host
                .default_of(PolicyKind::Consolidation)
                .and_then(|default| {
                    let called = host.ask_order(&default, round);
                    add_use(uses, host.note(&default, at_round(round), &called, None));
                    called.result.ok()
                });
            asked.unwrap_or_else(|| DefaultConsolidation.order(round).keys)
        })
    }

    fn judge(
        &mut self,
        host: &HostState,
        JudgeAsk { round, moves }: JudgeAsk<'_>,
        uses: &mut Vec<PolicyUse>,
    ) -> &[Verdict] {
        self.verdicts.get_or_insert_with(|| {
            let asked = host
                .default_of(PolicyKind::Consolidation)
                .and_then(|default| {
                    let called = host.ask_judge(&default, round, moves);
                    add_use(uses, host.note(&default, at_round(round), &called, None));
                    called.result.ok()
                });
            asked.unwrap_or_else(|| DefaultConsolidation.judge(round, moves).verdicts)
        })
    }
}

#[cfg(test)]
mod tests;
