//! Answers of a rank rule about the offerings of a round.

use hooks::columns::saturated;
use hooks::disruption::Context;
use hooks::ranking::{ClaimView, RankRound, Ranking};

use super::facts::{OfferingFacts, Owners, OwnersView, RankVariable, UsageIndex};
use super::steps::Steps;
use super::{Judgement, PolicyRule, Ran, RuleExpressions, with_steps};
use crate::guest::call_failure::CallFailure;
use crate::interface::exchange::RankAsk;

/// Answer of a rank rule about one row.
#[derive(Debug, Clone, PartialEq)]
struct Scored {
    score: f64,
    /// Why it is excluded.
    excluded: Option<String>,
}

impl PolicyRule {
    pub(crate) fn rank(&self, ask: RankAsk<'_>, context: &Context, fuel: u64) -> Ran<Vec<Ranking>> {
        let RankAsk {
            round,
            claims,
            prior,
        } = ask;
        with_steps(fuel, |steps| {
            let Judgement::Rank(expressions) = &self.judgement else {
                return Err(self.of_another_kind());
            };
            let scoring = Scoring {
                rule: self,
                expressions,
                round,
                usage: UsageIndex::new(&round.usage),
                prior,
                context,
            };
            scoring.rankings(claims, steps)
        })
    }
}

struct Scoring<'a> {
    rule: &'a PolicyRule,
    expressions: &'a RuleExpressions<RankVariable>,
    round: &'a RankRound,
    usage: UsageIndex,
    prior: &'a [f64],
    context: &'a Context,
}

impl Scoring<'_> {
    fn rankings(
        &self,
        claims: &[&ClaimView],
        steps: &mut Steps,
    ) -> Result<Vec<Ranking>, CallFailure> {
        let rows = self.round.table.price.len();
        let mut known: Vec<Option<Scored>> = vec![None; rows];
        let mut rankings = Vec::with_capacity(claims.len());
        let owners = Owners::new(&self.round.workloads, &self.round.table.symbols);
        for (position, claim) in (0_u32..).zip(claims) {
            let owners = owners.of(&[position]);
            if self.expressions.is_of_claim {
                known.fill(None);
            }
            let all: Vec<u32>;
            let candidates = if claim.candidates.is_empty() {
                all = (0..saturated(rows)).collect();
                &all
            } else {
                &claim.candidates
            };
            let mut ranking = Ranking {
                scores: Vec::with_capacity(candidates.len()),
                ..Ranking::default()
            };
            for (position, &row) in (0_u32..).zip(candidates) {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                let scored = match known.get(row).cloned().flatten() {
                    Some(scored) => scored,
                    None => self.scored(claim, &owners, row, steps)?,
                };
                ranking.scores.push(scored.score);
                if let Some(reason) = &scored.excluded {
                    ranking.excluded.push((position, reason.clone()));
                }
                if let Some(slot) = known.get_mut(row) {
                    *slot = Some(scored);
                }
            }
            rankings.push(ranking);
        }
        Ok(rankings)
    }

    fn scored(
        &self,
        claim: &ClaimView,
        owners: &OwnersView<'_>,
        row: usize,
        steps: &mut Steps,
    ) -> Result<Scored, CallFailure> {
        let facts = OfferingFacts {
            table: &self.round.table,
            usage: &self.usage,
            owners,
            prior: self.prior,
            claim,
            context: self.context,
            row,
        };
        let RuleExpressions {
            rule, exclusions, ..
        } = self.expressions;
        let mut run = self.expressions.run(&facts, steps);
        let prior = self.prior.get(row).copied().unwrap_or(0.0);
        let value = rule.as_ref().map(|cost| run.value(cost)).transpose();
        let value = match value {
            Ok(value) => value.filter(|it| !it.is_absent()),
            Err(error) => return Err(self.rule.failure(error, steps)),
        };
        // Of what is absent nothing is known: it costs what it cost before.
        let score = value.map_or(prior, |it| it.number());
        if !score.is_finite() || score < 0.0 {
            return Err(self.no_cost(score, row));
        }
        let mut excluded = None;
        for exclusion in exclusions {
            match run.value(&exclusion.condition) {
                Ok(value) if value.is_true() => {
                    let message_of_row = || self.expressions.message(&mut run);
                    let message = (!exclusion.has_comment).then(message_of_row).flatten();
                    excluded = Some(message.unwrap_or_else(|| exclusion.reason.clone()));
                    break;
                }
                Ok(_) => {}
                Err(error) => return Err(self.rule.failure(error, steps)),
            }
        }
        // A negative zero is a zero, and must not order before one.
        let score = score + 0.0;
        Ok(Scored { score, excluded })
    }

    fn no_cost(&self, score: f64, row: usize) -> CallFailure {
        let table = &self.round.table;
        let name = |column: &[u32]| {
            let sym = column.get(row).and_then(|sym| usize::try_from(*sym).ok());
            sym.and_then(|sym| table.symbols.get(sym))
                .map_or("", String::as_str)
        };
        CallFailure::InvalidAnswer(format!(
            "the score {score} of {} in {} is not a finite cost",
            name(&table.instance_type),
            name(&table.zone),
        ))
    }
}
