//! Ranking: a chain passes its scores on as `prior` and unites its exclusions.
//!
//! Scores order and exclusions narrow; neither makes an offering fit that does not.

mod first_choice;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hooks::columns::{at, word};
use hooks::policy_use::PolicyKind;
use hooks::ranking::{
    ClaimView, Needs, PolicyUse, PremiumMax, RankAnswer, RankHook, RankRound, Ranking,
};

use super::add_use;
use crate::active_policy::ActivePolicy;
use crate::host::{HostState, PolicyHost, RoundRef};
use crate::records::ShadowDifference;
use first_choice::{choice, named};
pub(crate) use first_choice::{first_choice, rows};

/// Claims of a call whose first choices are compared: comparing reads every row.
const COMPARED_MAX: usize = 4;

impl RankHook for PolicyHost {
    fn rank(&self, round: &RankRound) -> RankAnswer {
        let active = self.inner.active();
        let mut chains = Chains {
            host: &self.inner,
            round,
            answers: round.claims.iter().map(|_| None).collect(),
            uses: Vec::new(),
        };
        let all: Vec<Arc<ActivePolicy>> = active.chain(PolicyKind::Rank).cloned().collect();
        for (chain, claims) in grouped(round, &all) {
            chains.run(&chain.0, &claims);
        }
        let answers = round.claims.iter().zip(chains.answers);
        let rankings = answers.map(|(claim, it)| it.unwrap_or_else(|| by_prior(round, claim)));
        RankAnswer {
            rankings: rankings.collect(),
            uses: chains.uses,
        }
    }

    fn needs(&self) -> Needs {
        self.inner.active().needs(PolicyKind::Rank)
    }

    fn identity(&self) -> String {
        self.inner.active().identity(PolicyKind::Rank).to_owned()
    }
}

/// A chain, ordered by the positions of its policies: those that decide, and those that watch at their place.
struct Chain(Vec<Arc<ActivePolicy>>);

/// The claims by the chain that is for their pool.
fn grouped(round: &RankRound, all: &[Arc<ActivePolicy>]) -> Vec<(Chain, Vec<usize>)> {
    let mut groups: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (index, claim) in round.claims.iter().enumerate() {
        let pool = pool_name(round, claim);
        let links = (0..all.len())
            .filter(|&link| all.get(link).is_some_and(|policy| policy.is_for(pool)))
            .collect();
        groups.entry(links).or_default().push(index);
    }
    groups
        .into_iter()
        .map(|(links, claims)| {
            let links = links.into_iter().filter_map(|link| all.get(link).cloned());
            (Chain(links.collect()), claims)
        })
        .collect()
}

fn pool_name<'a>(round: &'a RankRound, claim: &ClaimView) -> &'a str {
    word(&round.table.symbols, claim.nodepool)
}

/// Where every chain starts, and what the native default answers.
fn by_prior(round: &RankRound, claim: &ClaimView) -> Ranking {
    Ranking {
        scores: priors(round, claim).into_owned(),
        excluded: Vec::new(),
        note: None,
        premium_max: None,
    }
}

/// The column of priors as a claim sees it.
fn priors<'a>(round: &'a RankRound, claim: &ClaimView) -> Cow<'a, [f64]> {
    let prior = &round.table.prior;
    if claim.candidates.is_empty() {
        Cow::Borrowed(prior)
    } else {
        claim.candidates.iter().map(|&row| at(prior, row)).collect()
    }
}

struct Chains<'a> {
    host: &'a HostState,
    round: &'a RankRound,
    /// Answers for each claim so far.
    answers: Vec<Option<Ranking>>,
    uses: Vec<PolicyUse>,
}

impl<'a> Chains<'a> {
    fn run(&mut self, chain: &[Arc<ActivePolicy>], claims: &[usize]) {
        if !chain.iter().any(|policy| policy.decides())
            && let Some(default) = self.host.default_of(PolicyKind::Rank)
        {
            self.link(&default, claims, &self.round.table.prior);
        }
        let mut is_answered = false;
        for policy in chain {
            for (claims, prior) in self.agreeing(claims, is_answered) {
                if policy.decides() {
                    self.link(policy, &claims, &prior);
                } else {
                    self.watch(policy, &claims, &prior);
                }
            }
            is_answered |= policy.decides();
        }
    }

    /// The table has one `prior` column: where claims agree on it, one call does. Before any answer they do.
    fn agreeing(&self, claims: &[usize], is_answered: bool) -> Vec<(Vec<usize>, Cow<'a, [f64]>)> {
        let first = Cow::Borrowed(self.round.table.prior.as_slice());
        if !is_answered {
            return vec![(claims.to_vec(), first)];
        }
        if let Some(prior) = self.merged_prior(claims) {
            return vec![(claims.to_vec(), Cow::Owned(prior))];
        }
        let each = claims.iter().map(|claim| {
            let prior = self.merged_prior(&[*claim]);
            (
                vec![*claim],
                prior.map_or_else(|| first.clone(), Cow::Owned),
            )
        });
        each.collect()
    }

    /// Asks one policy for some claims. Without an answer the scores stay as they came, which is what
    /// the default would say.
    fn link(&mut self, policy: &ActivePolicy, claims: &[usize], prior: &[f64]) {
        let views: Vec<&ClaimView> = claims
            .iter()
            .filter_map(|&claim| self.round.claims.get(claim))
            .collect();
        let called = self.host.ask_rank(policy, self.round, &views, prior);
        let policy_use = self.host.note(policy, self.at_round(), &called, None);
        add_use(&mut self.uses, policy_use);
        if let Ok(answers) = called.result {
            if policy.key.is_some() {
                self.note_change(policy, claims, &answers);
            }
            for (&claim, answer) in claims.iter().zip(answers) {
                let answer = Ranking {
                    premium_max: policy.facts.premium_max(),
                    ..answer
                };
                match self.answers.get_mut(claim) {
                    Some(Some(ranking)) => passed_on(ranking, answer),
                    Some(first) => *first = Some(answer),
                    None => {}
                }
            }
        }
    }

    /// Notes for whom the first choice is another one by these answers than by those before them.
    fn note_change(&self, policy: &ActivePolicy, claims: &[usize], answers: &[Ranking]) {
        let round = self.round;
        let compared = claims.iter().zip(answers).take(COMPARED_MAX);
        let mut changed = compared.filter_map(|(&claim, answer)| {
            let before = self.answers.get(claim)?.as_ref();
            let claim = round.claims.get(claim)?;
            let scores = before.map_or_else(|| priors(round, claim), |it| (&it.scores).into());
            let excluded = before.map_or(&[][..], |it| &it.excluded);
            if answer.excluded.is_empty() && *scores == *answer.scores {
                return None;
            }
            let ours = choice(round, claim, &scores, [excluded, &[]]);
            let theirs = choice(round, claim, &answer.scores, [excluded, &answer.excluded]);
            (ours != theirs).then_some((claim, ours, theirs))
        });
        let Some((claim, before, after)) = changed.next() else {
            return;
        };
        let more = match changed.count() {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let pool = pool_name(round, claim);
        let (before, after) = (named(round, before), named(round, after));
        let text = format!("first choice of NodePool {pool}: {before} -> {after}{more}");
        self.host.note_change(policy, self.at_round(), text);
    }

    /// Asks a policy that only watches, and notes what it would change at its place in the chain.
    fn watch(&self, shadow: &ActivePolicy, claims: &[usize], prior: &[f64]) {
        let round = self.round;
        let watched: Vec<(&ClaimView, Cow<'_, Ranking>)> = claims
            .iter()
            .filter_map(|&claim| Some((round.claims.get(claim)?, self.so_far(claim)?)))
            .collect();
        let views: Vec<&ClaimView> = watched.iter().map(|(claim, _)| *claim).collect();
        let called = self.host.ask_rank(shadow, round, &views, prior);
        let difference = called.result.as_ref().ok().map(|answers| {
            let mut difference = ShadowDifference::default();
            for ((claim, before), answer) in watched.iter().zip(answers) {
                let mut after = before.clone().into_owned();
                passed_on(&mut after, answer.clone());
                let (ours, theirs) = (
                    first_choice(round, claim, before),
                    first_choice(round, claim, &after),
                );
                if let (Some(ours), Some(theirs)) = (ours, theirs) {
                    difference.disagreements += u32::from(ours != theirs);
                    difference.usd_per_hour +=
                        at(&round.table.price, theirs) - at(&round.table.price, ours);
                }
            }
            difference
        });
        self.host.note(shadow, self.at_round(), &called, difference);
    }

    /// The scores so far as a column; `None` when two claims give one row different scores.
    fn merged_prior(&self, claims: &[usize]) -> Option<Vec<f64>> {
        let mut prior = self.round.table.prior.clone();
        let mut set = vec![false; prior.len()];
        for &index in claims {
            let (claim, ranking) = (self.round.claims.get(index)?, self.so_far(index)?);
            for (row, &score) in rows(claim, prior.len()).zip(&ranking.scores) {
                let row = usize::try_from(row).ok()?;
                if let (Some(value), Some(set)) = (prior.get_mut(row), set.get_mut(row)) {
                    if *set && value.to_bits() != score.to_bits() {
                        return None;
                    }
                    *value = score;
                    *set = true;
                }
            }
        }
        Some(prior)
    }

    /// Ranking of a claim after the policies that answered so far.
    fn so_far(&self, claim: usize) -> Option<Cow<'_, Ranking>> {
        let view = self.round.claims.get(claim)?;
        Some(match self.answers.get(claim)? {
            Some(answer) => Cow::Borrowed(answer),
            None => Cow::Owned(by_prior(self.round, view)),
        })
    }

    fn at_round(&self) -> RoundRef<'_> {
        RoundRef {
            kind: PolicyKind::Rank,
            decision_id: &self.round.decision_id,
            now_seconds: self.round.now_seconds,
        }
    }
}

fn passed_on(ranking: &mut Ranking, answer: Ranking) {
    let Ranking {
        scores,
        excluded,
        note,
        premium_max,
    } = answer;
    ranking.scores = scores;
    ranking.premium_max = [ranking.premium_max, premium_max]
        .into_iter()
        .flatten()
        .reduce(PremiumMax::tighter);
    // The first policy to exclude a candidate gives the reason.
    for (position, reason) in excluded {
        if !ranking.excluded.iter().any(|(known, _)| *known == position) {
            ranking.excluded.push((position, reason));
        }
    }
    ranking.excluded.sort_unstable();
    ranking.note = match (ranking.note.take(), note) {
        (Some(earlier), Some(later)) => Some(format!("{earlier}; {later}")),
        (earlier, later) => earlier.or(later),
    };
}
