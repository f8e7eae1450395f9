//! Questions put to a guest, and what must be true of an answer before anybody reads it.
//!
//! An answer is taken whole or not at all: one score that is not a number voids it. How much an answer
//! may make the host allocate is bounded by the store, before anything is lifted.

use disruption::hooks as native;
use scheduling::ranking::{ClaimView, OfferingTable, RankRound, Ranking};

use crate::bindings::exports::mortise::policy::{budgets, rank};
use crate::call::{CallFailure, Session};
use crate::convert;

/// Reasons, notes and explanations beyond this are cut: they go into events.
const TEXT_BYTES_MAX: usize = 1024;

/// Arguments of `rank`.
#[derive(Clone, Copy)]
pub(crate) struct RankQuestion<'a> {
    pub(crate) context: &'a native::Context,
    pub(crate) table: &'a OfferingTable,
    pub(crate) prior: &'a [f64],
    pub(crate) claims: &'a [&'a ClaimView],
}

/// The allowances of one policy, and how long they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) items: Vec<native::Allowance>,
    pub(crate) valid_for_seconds: u32,
}

/// The whole of a round put to one policy, as its table is.
pub(crate) fn rank_round(
    session: &mut Session<'_>,
    round: &RankRound,
) -> Result<Vec<Ranking>, CallFailure> {
    let claims: Vec<&ClaimView> = round.claims.iter().collect();
    let question = RankQuestion {
        context: &convert::rank_context(round),
        table: &round.table,
        prior: &round.table.prior,
        claims: &claims,
    };
    rank(session, question)
}

pub(crate) fn rank(
    session: &mut Session<'_>,
    question: RankQuestion<'_>,
) -> Result<Vec<Ranking>, CallFailure> {
    let RankQuestion {
        context,
        table,
        prior,
        claims,
    } = question;
    let answer = session.ask(|store, instance, module| {
        let indices = module.rank.as_ref().ok_or_else(|| missing("rank"))?;
        let guest = indices.load(&mut *store, instance)?;
        convert::with_context(context, |context| {
            convert::with_offerings(table, prior, |table| {
                convert::with_claims(claims, |claims| {
                    guest.call_rank(store, context, table, claims)
                })
            })
        })
    })?;
    same_length("rankings", answer.len(), claims.len())?;
    answer
        .into_iter()
        .zip(claims)
        .map(|(ranking, claim)| {
            let candidates = if claim.candidates.is_empty() {
                table.price.len()
            } else {
                claim.candidates.len()
            };
            checked_ranking(ranking, candidates)
        })
        .collect()
}

fn checked_ranking(ranking: rank::Ranking, candidates: usize) -> Result<Ranking, CallFailure> {
    let rank::Ranking {
        mut scores,
        excluded,
        excluded_reason,
        reasons,
        note,
    } = ranking;
    same_length("scores", scores.len(), candidates)?;
    same_length(
        "reasons of exclusions",
        excluded_reason.len(),
        excluded.len(),
    )?;
    let is_cost = |score: f64| (0.0..f64::INFINITY).contains(&score);
    // Without a way out of the loop, so that it goes over several scores at once.
    let mut are_costs = true;
    for score in &mut scores {
        are_costs &= is_cost(*score);
        // A negative zero is a zero, and must not order before one.
        *score += 0.0;
    }
    if !are_costs && let Some(score) = scores.iter().find(|score| !is_cost(**score)) {
        return Err(invalid(format!("the score {score} is not a finite cost")));
    }
    let mut exclusions = Vec::with_capacity(excluded.len());
    for (position, reason) in excluded.into_iter().zip(excluded_reason) {
        if index(position) >= candidates {
            return Err(invalid(format!(
                "exclusion of candidate {position} of {candidates}"
            )));
        }
        let Some(reason) = reasons.get(index(reason)) else {
            return Err(invalid(format!("reason {reason} of {}", reasons.len())));
        };
        exclusions.push((position, short(reason.clone())));
    }
    exclusions.sort_unstable();
    exclusions.dedup_by_key(|(position, _)| *position);
    Ok(Ranking {
        scores,
        excluded: exclusions,
        note: note.map(short),
    })
}

pub(crate) fn order(
    session: &mut Session<'_>,
    round: &native::ConsolidationRound,
) -> Result<Vec<f64>, CallFailure> {
    let native::ConsolidationRound { context, nodes } = round;
    let keys = session.ask(|store, instance, module| {
        let indices = module
            .consolidation
            .as_ref()
            .ok_or_else(|| missing("consolidation"))?;
        let guest = indices.load(&mut *store, instance)?;
        convert::with_context(context, |context| {
            convert::with_nodes(nodes, |nodes| guest.call_order(store, context, nodes))
        })
    })?;
    same_length("order keys", keys.len(), nodes.name.len())?;
    match keys.iter().find(|key| !key.is_finite()) {
        Some(key) => Err(invalid(format!("the order key {key} is not finite"))),
        None => Ok(keys),
    }
}

pub(crate) fn judge(
    session: &mut Session<'_>,
    round: &native::ConsolidationRound,
    moves: &[native::Move],
) -> Result<Vec<native::Verdict>, CallFailure> {
    let native::ConsolidationRound { context, nodes } = round;
    let verdicts = session.ask(|store, instance, module| {
        let indices = module
            .consolidation
            .as_ref()
            .ok_or_else(|| missing("consolidation"))?;
        let guest = indices.load(&mut *store, instance)?;
        let moves: Vec<_> = moves.iter().map(convert::proposed).collect();
        convert::with_context(context, |context| {
            convert::with_nodes(nodes, |nodes| {
                guest.call_judge(store, context, nodes, &moves)
            })
        })
    })?;
    same_length("verdicts", verdicts.len(), moves.len())?;
    if let Some(verdict) = verdicts.iter().find(|verdict| !verdict.score.is_finite()) {
        return Err(invalid(format!(
            "the score {} is not finite",
            verdict.score
        )));
    }
    Ok(verdicts
        .into_iter()
        .map(|it| {
            let mut verdict = convert::verdict(it);
            verdict.reason = short(verdict.reason);
            verdict
        })
        .collect())
}

pub(crate) fn allow(
    session: &mut Session<'_>,
    round: &native::BudgetRound,
) -> Result<Allowed, CallFailure> {
    let native::BudgetRound { context, pools } = round;
    let budgets::Allowances { items, valid_for } = session.ask(|store, instance, module| {
        let indices = module.budgets.as_ref().ok_or_else(|| missing("budgets"))?;
        let guest = indices.load(&mut *store, instance)?;
        convert::with_context(context, |context| {
            convert::with_pools(pools, |pools| guest.call_allow(store, context, pools))
        })
    })?;
    let mut items: Vec<native::Allowance> = items.into_iter().map(convert::allowance).collect();
    if let Some(item) = items.iter().find(|item| index(item.pool) >= pools.len()) {
        return Err(invalid(format!(
            "an allowance for pool {} of {}",
            item.pool,
            pools.len()
        )));
    }
    items.sort_by_key(|item| (item.pool, item.reason));
    let twice = items
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if (a.pool, a.reason) == (b.pool, b.reason)));
    if twice {
        return Err(invalid("two allowances for one pool and reason".to_owned()));
    }
    for item in &mut items {
        item.why = short(std::mem::take(&mut item.why));
    }
    Ok(Allowed {
        items,
        valid_for_seconds: valid_for,
    })
}

fn missing(interface: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("the component has no {interface} interface"))
}

fn same_length(what: &str, found: usize, expected: usize) -> Result<(), CallFailure> {
    if found == expected {
        Ok(())
    } else {
        Err(invalid(format!(
            "{found} {what} where {expected} were asked for"
        )))
    }
}

fn invalid(message: String) -> CallFailure {
    CallFailure::InvalidAnswer(message)
}

fn index(sym: u32) -> usize {
    usize::try_from(sym).unwrap_or(usize::MAX)
}

fn short(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    }
    text
}
