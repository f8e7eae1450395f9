//! Questions put to a guest, and what must be true of an answer before anybody reads it.
//!
//! An answer is taken whole or not at all: one score that is not a number voids it. How much an answer
//! may make the host allocate is bounded by the store, before anything is lifted.

use hooks::columns::index;
use hooks::disruption as native;
use hooks::ranking::Ranking;

use crate::call_context::CallContext;
use crate::guest::call::Session;
use crate::guest::call_failure::CallFailure;
use crate::guest::limits::short;
use crate::guest::memories::MEMORY_BYTES_MAX;
use crate::interface::exchange::{GivenAllowances, GivenRanking, JudgeAsk, RankAsk, Remembering};

/// The allowances of one policy, and how long they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    pub(crate) items: Vec<native::Allowance>,
    pub(crate) valid_for_seconds: u32,
}

pub(crate) fn rank(
    session: &mut Session<'_>,
    call: &CallContext<'_>,
    ask: RankAsk<'_>,
) -> Result<Remembering<Vec<Ranking>>, CallFailure> {
    let RankAsk { round, claims, .. } = ask;
    let answer = session.ask(|guest, at| guest.rank(at, call, ask))?;
    checked(answer, |given| {
        same_length("rankings", given.len(), claims.len())?;
        let rankings = given.into_iter().zip(claims).map(|(ranking, claim)| {
            let candidates = if claim.candidates.is_empty() {
                round.table.price.len()
            } else {
                claim.candidates.len()
            };
            checked_ranking(ranking, candidates)
        });
        rankings.collect()
    })
}

/// An answer looked through, with its memory, which is small or voids it.
fn checked<T, U>(
    given: Remembering<T>,
    check: impl FnOnce(T) -> Result<U, CallFailure>,
) -> Result<Remembering<U>, CallFailure> {
    let Remembering { answer, memory } = given;
    match memory.as_ref().map_or(0, Vec::len) {
        bytes if bytes > MEMORY_BYTES_MAX => Err(invalid(format!(
            "a memory of {bytes} bytes where {MEMORY_BYTES_MAX} may be kept"
        ))),
        _ => Ok(Remembering {
            answer: check(answer)?,
            memory,
        }),
    }
}

fn checked_ranking(ranking: GivenRanking, candidates: usize) -> Result<Ranking, CallFailure> {
    let GivenRanking {
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
    if !are_plain_costs(&scores) {
        for score in &mut scores {
            if !(0.0..f64::INFINITY).contains(score) {
                return Err(invalid(format!("the score {score} is not a finite cost")));
            }
            // A negative zero is a zero, and must not order before one.
            *score += 0.0;
        }
    }
    // Cut once: thousands of rows may share one that is long.
    let reasons: Vec<String> = reasons.into_iter().map(short).collect();
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
        exclusions.push((position, reason.clone()));
    }
    exclusions.sort_unstable();
    exclusions.dedup_by_key(|(position, _)| *position);
    Ok(Ranking {
        premium_max: None,
        scores,
        excluded: exclusions,
        note: note.map(short),
    })
}

pub(crate) fn order(
    session: &mut Session<'_>,
    call: &CallContext<'_>,
    round: &native::ConsolidationRound,
) -> Result<Vec<f64>, CallFailure> {
    let keys = session.ask(|guest, at| guest.order(at, call, round))?;
    same_length("order keys", keys.len(), round.nodes.name.len())?;
    match keys.iter().find(|key| !key.is_finite()) {
        Some(key) => Err(invalid(format!("the order key {key} is not finite"))),
        None => Ok(keys),
    }
}

pub(crate) fn judge(
    session: &mut Session<'_>,
    call: &CallContext<'_>,
    ask: JudgeAsk<'_>,
) -> Result<Remembering<Vec<native::Verdict>>, CallFailure> {
    let answer = session.ask(|guest, at| guest.judge(at, call, ask))?;
    checked(answer, |mut verdicts| {
        same_length("verdicts", verdicts.len(), ask.moves.len())?;
        if let Some(verdict) = verdicts.iter().find(|verdict| !verdict.score.is_finite()) {
            return Err(invalid(format!(
                "the score {} is not finite",
                verdict.score
            )));
        }
        verdicts.iter_mut().for_each(bounded);
        Ok(verdicts)
    })
}

fn bounded(verdict: &mut native::Verdict) {
    verdict.reason = short(std::mem::take(&mut verdict.reason));
}

pub(crate) fn allow(
    session: &mut Session<'_>,
    call: &CallContext<'_>,
    round: &native::BudgetRound,
) -> Result<Remembering<Allowed>, CallFailure> {
    let pools = &round.pools;
    let answer = session.ask(|guest, at| guest.allow(at, call, pools))?;
    checked(answer, |given| {
        let GivenAllowances {
            mut items,
            valid_for_seconds,
        } = given;
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
            valid_for_seconds,
        })
    })
}

/// Whether all are finite and none has a sign: by the bits, since an adder goes over several at once where comparing
/// does not.
fn are_plain_costs(scores: &[f64]) -> bool {
    // What is infinite or no number has all bits of the exponent, and one more carries into the sign.
    const LAST_OF_EXPONENT: u64 = 1 << 52;
    let signs = scores.iter().fold(0, |signs, score| {
        let bits = score.to_bits();
        signs | bits | bits.wrapping_add(LAST_OF_EXPONENT)
    });
    signs >> 63 == 0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_beyond_its_bound_voids_the_answer() {
        for (bytes, is_kept) in [
            (0, true),
            (MEMORY_BYTES_MAX, true),
            (MEMORY_BYTES_MAX + 1, false),
        ] {
            let given = Remembering {
                answer: 1,
                memory: Some(vec![7; bytes]),
            };
            let found = checked(given, Ok);
            assert_eq!(found.is_ok(), is_kept, "{bytes}: {found:?}");
        }
        let error = checked(
            Remembering {
                answer: 1,
                memory: Some(vec![7; 5000]),
            },
            Ok,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("5000 bytes where 4096"), "{error}");
    }
}
