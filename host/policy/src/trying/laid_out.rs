//! Questions and answers as tables that people read: what `mortise policy run` prints.
//!
//! Nothing is judged or shortened: each row of the question has its row here.

mod question;
mod tables;

use apis::ObjectKey;
use hooks::columns::word;
use hooks::disruption::{MoveKind, VerdictDecision};
use hooks::ranking::{ClaimView, RankStage};
use serde::Serialize;

use crate::active_policy::ActivePolicy;
use crate::guest::called::Called;
use crate::host::{HostState, PolicyHost};
use crate::interface::exchange::{JudgeAsk, RankAsk, Remembering};
use crate::recording::{RecordedAnswer, RecordedQuestion};
use tables::{allowances, judged, ordered, ranked};

/// A policy's answer to the question of a recorded decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaidOut {
    /// Id of the decision.
    pub decision_id: String,
    /// Moment of the decision, in seconds since 1970.
    pub now_seconds: u64,
    /// `rank`, `consolidation` or `budgets`.
    pub kind: &'static str,
    /// The table, or why there is none.
    #[serde(flatten)]
    pub result: LaidOutResult,
    /// Lines that the policy logged.
    pub log: Vec<String>,
}

/// A table, or a failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LaidOutResult {
    /// One entry a claim.
    Claims(Vec<RankedClaim>),
    /// Nodes in the order in which they are tried.
    Nodes(Vec<OrderedNode>),
    /// One entry a move.
    Moves(Vec<JudgedMove>),
    /// One entry for each NodePool and reason.
    Allowances(Vec<AllowedNodes>),
    /// Kind of failure, and what exactly, as one text.
    Failure(String),
}

/// Offerings of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedClaim {
    /// Name of the NodePool.
    pub node_pool: String,
    /// Occasion of the ranking.
    pub stage: RankStage,
    /// Pods of the claim.
    pub pods: u32,
    /// Best first; what is excluded comes last.
    pub offerings: Vec<RankedRow>,
    /// Line that the policy noted.
    pub note: Option<String>,
}

/// An offering as the policy ranks it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedRow {
    /// Name of the instance type.
    pub instance_type: String,
    pub zone: String,
    /// `on-demand`, `spot` or `reserved`.
    pub capacity_type: &'static str,
    /// List price, USD an hour.
    pub price: f64,
    /// Effective cost before the policy.
    pub prior: f64,
    /// Effective cost by the policy.
    pub score: f64,
    /// Why it is never launched.
    pub excluded: Option<String>,
}

/// A node with its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderedNode {
    pub name: String,
    /// Name of the NodePool.
    pub node_pool: String,
    /// Lower is tried first; negative is not tried.
    pub key: f64,
}

/// A move with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgedMove {
    /// Why nodes go, and whether others come.
    pub kind: MoveKind,
    /// Names of the nodes that go.
    pub remove: Vec<String>,
    /// NodePool of the first of them.
    pub node_pool: String,
    /// Number of nodes that come.
    pub new_nodes: u32,
    /// Type, zone and capacity type of what comes, where it is known.
    pub replacement: String,
    /// List price of the nodes that go, USD an hour.
    pub cost_before: f64,
    /// List price of the nodes that come, USD an hour.
    pub cost_after: f64,
    /// Effective cost of the nodes that go, USD an hour.
    pub effective_before: f64,
    /// Effective cost of the nodes that come, USD an hour.
    pub effective_after: f64,
    /// Number of pods that must find another node.
    pub pods_moved: u32,
    /// Whether the policy lets the move go ahead.
    pub verdict: VerdictDecision,
    /// Score of the move; the highest goes first.
    pub score: f64,
    /// Reason in the policy's words.
    pub reason: String,
}

/// Nodes of one pool that may be disrupted for one reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNodes {
    /// Name of the NodePool.
    pub node_pool: String,
    /// Reason of the disruptions that are allowed.
    pub reason: &'static str,
    /// Nodes by the budgets that are active; nothing where none is for the reason.
    pub declared: Option<u32>,
    /// Nodes by the policy; nothing where it says nothing.
    pub allowed: Option<u32>,
    /// Explanation in the policy's words.
    pub why: String,
}

impl PolicyHost {
    /// Whether a binding is for a question at all.
    pub fn is_asked(&self, key: &ObjectKey, question: &RecordedQuestion) -> bool {
        let Some(policy) = self.inner.policy(key) else {
            return false;
        };
        let is_in_scope = match question {
            RecordedQuestion::Rank { round, .. } => {
                let pools = round.claims.iter();
                let mut pools = pools.map(|it| word(&round.table.symbols, it.nodepool));
                pools.any(|it| policy.is_for(it))
            }
            RecordedQuestion::Order { .. }
            | RecordedQuestion::Judge { .. }
            | RecordedQuestion::Allow { .. } => true,
        };
        is_in_scope && policy.kinds.contains(&question.kind())
    }

    /// Puts a recorded question to a bound policy; `None` where the binding is not for it.
    pub fn lay_out(&self, key: &ObjectKey, question: &RecordedQuestion) -> Option<LaidOut> {
        if !self.is_asked(key, question) {
            return None;
        }
        let policy = self.inner.policy(key)?;
        let asked = self.inner.asked(&policy, question);
        let failed = |failure: crate::CallFailure| LaidOutResult::Failure(failure.told());
        Some(LaidOut {
            decision_id: question.decision_id().to_owned(),
            now_seconds: question.now_seconds(),
            kind: question.kind().as_str(),
            result: asked.result.unwrap_or_else(failed),
            log: asked.log.texts(),
        })
    }
}

impl LaidOut {
    /// Leaves out what is about other NodePools.
    pub fn only(mut self, node_pool: &str) -> Self {
        match &mut self.result {
            LaidOutResult::Claims(all) => all.retain(|it| it.node_pool == node_pool),
            LaidOutResult::Nodes(all) => all.retain(|it| it.node_pool == node_pool),
            LaidOutResult::Moves(all) => all.retain(|it| it.node_pool == node_pool),
            LaidOutResult::Allowances(all) => all.retain(|it| it.node_pool == node_pool),
            LaidOutResult::Failure(_) => {}
        }
        self
    }
}

impl HostState {
    fn asked(&self, policy: &ActivePolicy, question: &RecordedQuestion) -> Called<LaidOutResult> {
        fn laid_out<T>(
            called: Called<Remembering<T>>,
            table: impl FnOnce(T) -> LaidOutResult,
        ) -> Called<LaidOutResult> {
            called.map(|it| table(it.answer))
        }
        match question {
            RecordedQuestion::Rank { round, prior } => {
                let symbols = &round.table.symbols;
                let all = round.claims.iter();
                let claims: Vec<&ClaimView> = all
                    .filter(|it| policy.is_for(word(symbols, it.nodepool)))
                    .collect();
                let ask = RankAsk {
                    round,
                    claims: &claims,
                    prior,
                };
                laid_out(self.ask_rank_anew(policy, ask, &[]), |rankings| {
                    ranked(ask, &rankings)
                })
            }
            RecordedQuestion::Order { round } => {
                let called = self.ask_order_anew(policy, round, &[]);
                laid_out(called, |keys| ordered(round, &keys))
            }
            RecordedQuestion::Judge { round, moves } => {
                let called = self.ask_judge_anew(policy, JudgeAsk { round, moves }, &[]);
                laid_out(called, |verdicts| judged(round, moves, &verdicts))
            }
            RecordedQuestion::Allow { round } => {
                let called = self.ask_allow_anew(policy, round, &[]);
                laid_out(called, |allowed| {
                    allowances(
                        round,
                        &RecordedAnswer::Allow {
                            items: allowed.items,
                            valid_for_seconds: allowed.valid_for_seconds,
                        },
                    )
                })
            }
        }
    }
}
