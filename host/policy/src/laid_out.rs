//! Questions and answers as tables that people read: what `mortise policy run` prints.

use apis::ObjectKey;
use hooks::disruption::{
    BudgetReason, BudgetRound, ConsolidationRound, Move, MoveKind, NodeTable, Verdict,
    VerdictDecision,
};
use hooks::ranking::{ClaimView, RankRound, RankStage, Ranking};
use serde::Serialize;

use crate::active_policy::ActivePolicy;
use crate::called::Called;
use crate::columns::{at, word};
use crate::hooks::rows;
use crate::host::{HostState, PolicyHost};
use crate::interface::exchange::JudgeAsk;
use crate::interface::exchange::RankAsk;
use crate::interface::exchange::Remembering;
use crate::recording::{RecordedAnswer, RecordedQuestion};

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
    /// What the policy logged.
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
    /// Word and sentence.
    Failure(String),
}

/// Offerings of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedClaim {
    /// Name of the NodePool.
    pub node_pool: String,
    /// What is asked.
    pub stage: RankStage,
    /// Pods of the claim.
    pub pods: u32,
    /// Best first; what is excluded comes last.
    pub offerings: Vec<RankedRow>,
    /// The policy's line.
    pub note: Option<String>,
}

/// An offering as the policy ranks it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedRow {
    /// Its type.
    pub instance_type: String,
    /// Its zone.
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
    /// Its name.
    pub name: String,
    /// Its NodePool.
    pub node_pool: String,
    /// Lower is tried first; negative is not tried.
    pub key: f64,
}

/// A move with its verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JudgedMove {
    /// What it is.
    pub kind: MoveKind,
    /// Nodes that go.
    pub remove: Vec<String>,
    /// NodePool of the first of them.
    pub node_pool: String,
    /// Nodes that come.
    pub new_nodes: u32,
    /// Type, zone and capacity type of what comes, where it is known.
    pub replacement: String,
    /// List prices, USD an hour.
    pub cost_before: f64,
    /// Of what stays and comes.
    pub cost_after: f64,
    /// Effective costs.
    pub effective_before: f64,
    /// Of what stays and comes.
    pub effective_after: f64,
    /// Pods that move.
    pub pods_moved: u32,
    /// What the policy says.
    pub verdict: VerdictDecision,
    /// What it is worth to it.
    pub score: f64,
    /// In its words.
    pub reason: String,
}

/// An allowance.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowedNodes {
    /// Name of the NodePool.
    pub node_pool: String,
    /// For what.
    pub reason: &'static str,
    /// Nodes by the budgets that are active; nothing where none is for the reason.
    pub declared: Option<u32>,
    /// Nodes by the policy; nothing where it says nothing.
    pub allowed: Option<u32>,
    /// In its words.
    pub why: String,
}

impl RecordedQuestion {
    /// Id of the decision.
    pub fn decision_id(&self) -> &str {
        match self {
            Self::Rank { round, .. } => &round.decision_id,
            Self::Order { round } | Self::Judge { round, .. } => &round.context.decision_id,
            Self::Allow { round } => &round.context.decision_id,
        }
    }

    /// Moment of the decision.
    pub fn now_seconds(&self) -> u64 {
        match self {
            Self::Rank { round, .. } => round.now_seconds,
            Self::Order { round } | Self::Judge { round, .. } => round.context.now_seconds,
            Self::Allow { round } => round.context.now_seconds,
        }
    }

    /// Whether it is the other question, put to the next policy of a chain.
    pub fn is_same_round(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rank { round, .. }, Self::Rank { round: theirs, .. }) => round == theirs,
            _ => self == other,
        }
    }

    /// With what is about one NodePool; nothing where nothing is.
    pub fn about(mut self, node_pool: &str) -> Option<Self> {
        let is_left = match &mut self {
            Self::Rank { round, .. } => {
                let symbols = &round.table.symbols;
                round
                    .claims
                    .retain(|it| word(symbols, it.nodepool) == node_pool);
                !round.claims.is_empty()
            }
            // What is said of these may hang on all of them: the table is cut, and not the question.
            Self::Order { round } => pools_of(&round.nodes).any(|it| it == node_pool),
            Self::Judge { round, moves } => moves
                .iter()
                .any(|it| pool_of(&round.nodes, it) == node_pool),
            Self::Allow { round } => round.pools.iter().any(|it| it.name == node_pool),
        };
        is_left.then_some(self)
    }
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
        let failed = |failure: crate::CallFailure| {
            LaidOutResult::Failure(format!("{}: {failure}", failure.reason()))
        };
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

fn ranked(ask: RankAsk<'_>, rankings: &[Ranking]) -> LaidOutResult {
    let claims = ask.claims.iter().zip(rankings);
    let laid_out = claims.map(|(claim, ranking)| RankedClaim {
        node_pool: word(&ask.round.table.symbols, claim.nodepool).to_owned(),
        stage: claim.stage,
        pods: claim.pods.count,
        offerings: offerings(ask, claim, ranking),
        note: ranking.note.clone(),
    });
    LaidOutResult::Claims(laid_out.collect())
}

fn offerings(ask: RankAsk<'_>, claim: &ClaimView, ranking: &Ranking) -> Vec<RankedRow> {
    let RankRound { table, .. } = ask.round;
    let candidates = (0_u32..).zip(rows(claim, table.price.len()).zip(&ranking.scores));
    let mut offerings: Vec<RankedRow> = candidates
        .map(|(position, (row, score))| {
            let excluded = ranking.excluded.iter().find(|(out, _)| *out == position);
            let name = |column: &[u32]| word(&table.symbols, at(column, row)).to_owned();
            RankedRow {
                instance_type: name(&table.instance_type),
                zone: name(&table.zone),
                capacity_type: capacity_type(at(&table.capacity_type, row)),
                price: at(&table.price, row),
                prior: at(ask.prior, row),
                score: *score,
                excluded: excluded.map(|(_, reason)| reason.clone()),
            }
        })
        .collect();
    offerings.sort_by(|left, right| {
        let is_out = |it: &RankedRow| it.excluded.is_some();
        let out = is_out(left).cmp(&is_out(right));
        let costs = left.score.total_cmp(&right.score);
        let prices = left.price.total_cmp(&right.price);
        let names = |it: &RankedRow| (it.instance_type.clone(), it.zone.clone());
        out.then(costs)
            .then(prices)
            .then_with(|| names(left).cmp(&names(right)))
    });
    offerings
}

fn ordered(round: &ConsolidationRound, keys: &[f64]) -> LaidOutResult {
    let nodes = &round.nodes;
    let named = nodes.name.iter().zip(pools_of(nodes)).zip(keys);
    let mut all: Vec<OrderedNode> = named
        .map(|((name, pool), key)| OrderedNode {
            name: nodes.symbol(*name).to_owned(),
            node_pool: pool.to_owned(),
            key: *key,
        })
        .collect();
    all.sort_by(|left, right| {
        let skipped = (left.key < 0.0).cmp(&(right.key < 0.0));
        skipped.then(left.key.total_cmp(&right.key))
    });
    LaidOutResult::Nodes(all)
}

fn judged(round: &ConsolidationRound, moves: &[Move], verdicts: &[Verdict]) -> LaidOutResult {
    let nodes = &round.nodes;
    let pairs = moves.iter().zip(verdicts);
    let laid_out = pairs.map(|(it, verdict)| {
        let replacement = [
            nodes.symbol(it.replacement_type),
            nodes.symbol(it.replacement_zone),
            capacity_type(it.replacement_capacity_type),
        ];
        let known: Vec<&str> = replacement
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect();
        let gone = it
            .remove
            .iter()
            .map(|row| nodes.symbol(at(&nodes.name, *row)));
        JudgedMove {
            kind: it.kind,
            remove: gone.map(str::to_owned).collect(),
            node_pool: pool_of(nodes, it).to_owned(),
            new_nodes: it.new_nodes,
            replacement: known.join(" "),
            cost_before: it.cost_before,
            cost_after: it.cost_after,
            effective_before: it.effective_before,
            effective_after: it.effective_after,
            pods_moved: it.pods_moved,
            verdict: verdict.decision,
            score: verdict.score,
            reason: verdict.reason.clone(),
        }
    });
    LaidOutResult::Moves(laid_out.collect())
}

fn allowances(round: &BudgetRound, answer: &RecordedAnswer) -> LaidOutResult {
    let items = match answer {
        RecordedAnswer::Allow { items, .. } => items.as_slice(),
        RecordedAnswer::Rank(_) | RecordedAnswer::Order(_) | RecordedAnswer::Judge(_) => &[],
    };
    let mut all = Vec::new();
    for (number, pool) in (0_u32..).zip(&round.pools) {
        for reason in BudgetReason::ALL {
            let said = items
                .iter()
                .find(|it| it.pool == number && it.reason == reason);
            let active = pool
                .declared
                .iter()
                .filter(|it| it.active && it.reasons.contains(reason));
            all.push(AllowedNodes {
                node_pool: pool.name.clone(),
                reason: reason.as_str(),
                declared: active.map(|it| it.resolved).min(),
                allowed: said.map(|it| it.allowed),
                why: said.map_or_else(String::new, |it| it.why.clone()),
            });
        }
    }
    LaidOutResult::Allowances(all)
}

fn pools_of(nodes: &NodeTable) -> impl Iterator<Item = &str> {
    nodes.nodepool.iter().map(|it| nodes.symbol(*it))
}

/// NodePool of the first node that goes.
fn pool_of<'a>(nodes: &'a NodeTable, it: &Move) -> &'a str {
    let first = it.remove.first();
    first.map_or("", |row| nodes.symbol(at(&nodes.nodepool, *row)))
}

fn capacity_type(code: u8) -> &'static str {
    match code {
        0 => "on-demand",
        1 => "spot",
        2 => "reserved",
        _ => "",
    }
}
