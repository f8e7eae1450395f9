//! Moves that must pay for the pods they disturb: to what the ranking policy prefers although the list price is no
//! lower, and those that save little of the bill.
//!
//! What saves much by list price pays by itself. A preference is the policy's word, and a policy that changes its mind
//! every round would move the cluster to and fro. So such a move must pay for the pods that it disturbs with what it
//! saves for as long as the preference has held already, or until the first of the nodes expires if that is sooner:
//! what was wanted for an hour is worth an hour's savings. A move that saves next to nothing of the whole bill is not
//! worth a round of evictions right after a burst: it is treated alike, and waits for an hour at least.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use state::ledger::OutcomeId;

use crate::candidate::Candidate;
use crate::command::Proposal;
use crate::obstacle::Obstacle;

/// Assumed cost of disturbing a pod of ordinary eviction cost, USD.
const USD_PER_DISRUPTION: f64 = 0.01;
/// A move that saves less of the bill than this share must pay for itself first.
const SMALL_GAIN: f64 = 0.03;
/// And must have been there for this many hours.
const SMALL_GAIN_HOURS: f64 = 1.0;
const HOUR_SECONDS: f64 = 3_600.0;

/// Moves that are preferred or save little, and do not pay yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preferred {
    /// Since when a move of the claim's node has been wanted without a break.
    since: BTreeMap<String, Timestamp>,
    /// When the first of them pays.
    due: Option<Timestamp>,
}

/// Moves that a loop found and that must pay first, or did just now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deferred {
    looked_at: BTreeSet<String>,
    claims: BTreeMap<String, Timestamp>,
    due: Option<Timestamp>,
}

impl Deferred {
    /// Moves of these claims' nodes are looked for: a preference that is not found again is gone.
    pub(crate) fn looked_at(&mut self, claims: BTreeSet<String>) {
        self.looked_at = claims;
    }
}

impl Preferred {
    /// Whether it is time to look again.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.due.is_some_and(|it| it <= now)
    }

    /// Whether a move pays; one that does not is kept in mind.
    pub(crate) fn judge(
        &self,
        proposal: &Proposal<'_>,
        now: Timestamp,
        deferred: &mut Deferred,
    ) -> Result<(), Obstacle> {
        let list = proposal.before.price_per_hour - proposal.after.price_per_hour;
        let effective = proposal.savings_per_hour();
        if list > 0.0 || effective <= 0.0 || proposal.replacements().is_empty() {
            return Ok(());
        }
        let judged = self.pays(proposal, 0.0, now, deferred);
        judged.map_err(|wait| {
            let text = format!(
                "{effective:.4} USD an hour as the ranking policy reckons, {:.4} more by list price; {wait}",
                -list
            );
            Obstacle::new(OutcomeId::NodePreferenceTooYoung, text)
        })
    }

    /// Whether a move that saves less than [`SMALL_GAIN`] of the bill pays; one that does not is kept in mind.
    pub(crate) fn judge_gain(
        &self,
        proposal: &Proposal<'_>,
        bill_per_hour: f64,
        now: Timestamp,
        deferred: &mut Deferred,
    ) -> Result<(), Obstacle> {
        let saved = proposal.savings_per_hour();
        if saved <= 0.0 || saved >= bill_per_hour * SMALL_GAIN {
            return Ok(());
        }
        let judged = self.pays(proposal, SMALL_GAIN_HOURS, now, deferred);
        judged.map_err(|wait| {
            let share = 100.0 * saved / bill_per_hour;
            let text = format!("{saved:.4} USD an hour, {share:.1} % of the bill; {wait}");
            Obstacle::new(OutcomeId::NodeGainTooSmall, text)
        })
    }

    /// Whether the move has been wanted for long enough, or since when it is wanted and for how long it must be.
    fn pays(
        &self,
        proposal: &Proposal<'_>,
        hours_min: f64,
        now: Timestamp,
        deferred: &mut Deferred,
    ) -> Result<(), String> {
        let (nodes, effective) = (&proposal.candidates, proposal.savings_per_hour());
        let since = |it: &&Candidate| self.since.get(it.claim()).copied().unwrap_or(now);
        let since = nodes.iter().map(since).max().unwrap_or(now);
        let left = nodes.iter().filter_map(|it| it.expires_at()).min();
        let left = left.map(|at| hours(at.duration_since(now)));
        let disruption: f64 = nodes.iter().map(|it| it.reschedule_cost).sum();
        let needed = (disruption * USD_PER_DISRUPTION / effective).max(hours_min);
        let held = hours(now.duration_since(since));
        let horizon = left.map_or(held, |left| held.min(left));
        // One that pays may still have to let another go first.
        for node in nodes {
            deferred.claims.insert(node.claim().to_owned(), now);
        }
        if horizon >= needed {
            return Ok(());
        }
        let wait = SignedDuration::try_from_secs_f64((needed - held).max(0.0) * HOUR_SECONDS);
        let due = wait.ok().and_then(|it| now.checked_add(it).ok());
        let is_in_time = left.is_none_or(|left| left >= needed);
        if let Some(due) = due.filter(|_| is_in_time) {
            deferred.due = Some(deferred.due.map_or(due, |known| known.min(due)));
        }
        Err(format!("wanted for {held:.2} of {needed:.2} hours"))
    }

    /// Takes over what a loop found. Only claims that there still are stay.
    pub(crate) fn keep(&mut self, claims: &BTreeSet<&str>, found: Deferred) {
        let Deferred {
            looked_at,
            claims: wanted,
            due,
        } = found;
        let was_looked_at = !looked_at.is_empty();
        self.since.retain(|claim, _| {
            claims.contains(claim.as_str())
                && (!looked_at.contains(claim) || wanted.contains_key(claim))
        });
        for (claim, now) in wanted {
            self.since.entry(claim).or_insert(now);
        }
        if was_looked_at || due.is_some() || self.since.is_empty() {
            self.due = due;
        }
    }
}

fn hours(duration: SignedDuration) -> f64 {
    duration.as_secs_f64() / HOUR_SECONDS
}
