//! Answers as tables: each row with what people know it by, in the words of clusters.

use apis::CapacityType;
use hooks::columns::{at, word};
use hooks::disruption::{BudgetReason, BudgetRound, ConsolidationRound, Move, Verdict};
use hooks::ranking::{ClaimView, RankRound, Ranking};

use super::question::{pool_of, pools_of};
use super::{AllowedNodes, JudgedMove, LaidOutResult, OrderedNode, RankedClaim, RankedRow};
use crate::hooks::rows;
use crate::interface::exchange::RankAsk;
use crate::recording::RecordedAnswer;

pub(super) fn ranked(ask: RankAsk<'_>, rankings: &[Ranking]) -> LaidOutResult {
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

pub(super) fn offerings(ask: RankAsk<'_>, claim: &ClaimView, ranking: &Ranking) -> Vec<RankedRow> {
    let RankRound { table, .. } = ask.round;
    let candidates = (0_u32..).zip(rows(claim, table.price.len()).zip(&ranking.scores));
    let mut offerings: Vec<RankedRow> = candidates
        .map(|(position, (row, score))| {
            let excluded = ranking.excluded.iter().find(|(out, _)| *out == position);
            let name = |column: &[u32]| word(&table.symbols, at(column, row)).to_owned();
            RankedRow {
                instance_type: name(&table.instance_type),
                zone: name(&table.zone),
                capacity_type: CapacityType::word_of(at(&table.capacity_type, row)),
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

pub(super) fn ordered(round: &ConsolidationRound, keys: &[f64]) -> LaidOutResult {
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

pub(super) fn judged(
    round: &ConsolidationRound,
    moves: &[Move],
    verdicts: &[Verdict],
) -> LaidOutResult {
    let nodes = &round.nodes;
    let pairs = moves.iter().zip(verdicts);
    let laid_out = pairs.map(|(it, verdict)| {
        let replacement = [
            nodes.symbol(it.replacement_type),
            nodes.symbol(it.replacement_zone),
            CapacityType::word_of(it.replacement_capacity_type),
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

pub(super) fn allowances(round: &BudgetRound, answer: &RecordedAnswer) -> LaidOutResult {
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
            all.push(AllowedNodes {
                node_pool: pool.name.clone(),
                reason: reason.as_str(),
                declared: pool.declared_least(reason),
                allowed: said.map(|it| it.allowed),
                why: said.map_or_else(String::new, |it| it.why.clone()),
            });
        }
    }
    LaidOutResult::Allowances(all)
}
