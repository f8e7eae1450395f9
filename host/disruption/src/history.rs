//! Disruptions of late, as far as policies, budgets and the guard against going in circles ask for them.
//!
//! Owned by the shell, which tells it of every command; bounded to one day.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use apis::CapacityType;
use hooks::columns::saturated;
use hooks::disruption::BudgetReason;
use jiff::{SignedDuration, Timestamp};

use crate::command::{Command, Proposal};
use crate::consolidation::savings::SAVINGS_SHARE_MIN;

/// For this long a replacement is not traded for what it replaced.
const GUARD_SECONDS: i64 = 3_600;
const HOUR_SECONDS: i64 = 3_600;
/// A move that saves this share of what goes gets somewhere, whatever types it brings back.
const PROGRESS_SHARE: f64 = 0.2;
/// So long consolidation buys nothing in place of a node after its replacement did not come, twice as long after the
/// next time, an hour at most.
const CLAIM_BACKOFF: Backoff = Backoff {
    first_seconds: 300,
    longest_seconds: 3_600,
};
/// So long drift leaves a pool alone after a replacement did not come; the numbers of Karpenter's
/// `designs/drift-per-nodepool-backoff.md`.
const POOL_BACKOFF: Backoff = Backoff {
    first_seconds: 60,
    longest_seconds: 600,
};
const DAY_SECONDS: i64 = 86_400;

/// Moves finished in the last hour and the last day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// In the last hour.
    pub hour: u32,
    /// In the last day.
    pub day: u32,
}

/// Finished moves by pool, and the reasons of those under way by claim.
#[derive(Debug, Clone, Default)]
pub struct History {
    finished: DisruptedNodes,
    /// Replacements that did not come, by pool.
    missed: DisruptedNodes,
    reasons: BTreeMap<String, BudgetReason>,
    origins: BTreeMap<String, ClaimOrigin>,
    /// Reboots by UID of the claim.
    reboots: BTreeMap<String, VecDeque<Timestamp>>,
    /// Commands in a row whose replacements did not come, by claim.
    failures: BTreeMap<String, Failures>,
    /// The same of drift alone, by pool.
    pool_failures: BTreeMap<String, Failures>,
}

/// A pause that doubles with each failure.
#[derive(Debug, Clone, Copy)]
struct Backoff {
    first_seconds: i64,
    longest_seconds: i64,
}

/// How long nothing is bought in place of what replacements did not come for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplacementPause {
    /// Moment at which the pause ends.
    pub until: Timestamp,
    /// Commands in a row that led to it.
    pub failures: u32,
}

/// Commands in a row whose replacements did not come.
#[derive(Debug, Clone, Copy)]
struct Failures {
    times: u32,
    last: Timestamp,
}

impl Failures {
    fn another(before: Option<&Self>, now: Timestamp) -> Self {
        Self {
            times: before.map_or(0, |it| it.times).saturating_add(1),
            last: now,
        }
    }

    /// The pause that they lead to, unless it is over.
    fn pause(self, backoff: Backoff, now: Timestamp) -> Option<ReplacementPause> {
        let doubled = backoff.first_seconds << (self.times.saturating_sub(1)).min(16);
        let pause = SignedDuration::from_secs(doubled.min(backoff.longest_seconds));
        let until = self.last.saturating_add(pause).unwrap_or(Timestamp::MAX);
        // A failure that is still to come is one of a clock that was wrong.
        let failures = self.times;
        (self.last <= now && until > now).then_some(ReplacementPause { until, failures })
    }
}

/// Nodes that a claim came in place of.
#[derive(Debug, Clone)]
struct ClaimOrigin {
    at: Timestamp,
    /// How many moves in a row led to it, none of them longer ago than the guard remembers.
    moves: u32,
    /// Instance type and capacity type of all that went, over the whole chain of moves.
    gone: BTreeSet<(String, Option<CapacityType>)>,
}

impl History {
    /// A command about the claim began.
    pub fn note_start(&mut self, claim: &str, reason: BudgetReason) {
        self.reasons.insert(claim.to_owned(), reason);
    }

    /// Claims were created in place of the command's nodes.
    pub fn note_replacements(&mut self, command: &Command, claims: &[String], now: Timestamp) {
        let is_recent = |it: &ClaimOrigin| is_within(GUARD_SECONDS, it.at, now);
        self.origins.retain(|_, it| is_recent(it));
        if !command.method.is_consolidation() {
            return;
        }
        let mut gone = BTreeSet::new();
        let mut moves = 0;
        for node in &command.candidates {
            gone.insert((node.instance_type.clone(), node.capacity_type));
            let before = self.origins.get(&node.claim);
            gone.extend(before.into_iter().flat_map(|it| it.gone.iter().cloned()));
            moves = moves.max(before.map_or(0, |it| it.moves));
        }
        for claim in claims {
            let origin = ClaimOrigin {
                at: now,
                moves: moves.saturating_add(1),
                gone: gone.clone(),
            };
            self.origins.insert(claim.clone(), origin);
        }
    }

    /// Share of the cost of what goes that a move must save where several nodes come: twice as much each time that its
    /// nodes came by such moves themselves, so that a row of moves ends.
    pub(crate) fn share_to_save(&self, claims: &[&str], now: Timestamp) -> f64 {
        let moves = self.recent_origins(claims, now).map(|it| it.moves);
        let moves = moves.max().unwrap_or(0);
        (0..moves).fold(SAVINGS_SHARE_MIN, |share, _| share * 2.0)
    }

    /// The instance type that a move would bring back although one of its nodes came in place of it lately.
    pub(crate) fn brought_back<'a>(
        &self,
        proposal: &'a Proposal<'_>,
        now: Timestamp,
    ) -> Option<&'a str> {
        if proposal.savings_per_hour() >= proposal.before.effective_per_hour * PROGRESS_SHARE {
            return None;
        }
        let claims = proposal.claims();
        let origins: Vec<&ClaimOrigin> = self.recent_origins(&claims, now).collect();
        let comes = proposal.replacements().iter().map(|it| &it.best);
        comes
            .filter(|best| {
                let sold = (best.instance_type.clone(), best.capacity_type);
                origins.iter().any(|it| it.gone.contains(&sold))
            })
            .map(|best| best.instance_type.as_str())
            .next()
    }

    fn recent_origins<'b>(
        &'b self,
        claims: &'b [&str],
        now: Timestamp,
    ) -> impl Iterator<Item = &'b ClaimOrigin> {
        let origins = claims.iter().filter_map(|claim| self.origins.get(*claim));
        origins.filter(move |it| is_within(GUARD_SECONDS, it.at, now))
    }

    /// The command about the claim was given up.
    pub fn note_abandoned(&mut self, claim: &str) {
        self.reasons.remove(claim);
    }

    /// Replacements of the command did not come: no capacity, or never ready. To try again at once would taint and
    /// launch in vain for as long as the shortage lasts.
    pub fn note_failure(&mut self, command: &Command, now: Timestamp) {
        let is_recent = |it: &Failures| is_within(DAY_SECONDS, it.last, now);
        self.failures.retain(|_, it| is_recent(it));
        self.pool_failures.retain(|_, it| is_recent(it));
        for node in &command.candidates {
            let reason = Some(command.method.budget_reason());
            note(&mut self.missed, &node.pool, Disrupted { at: now, reason });
            let (known, name) = match command.method.budget_reason() {
                BudgetReason::Underutilized => (&mut self.failures, &node.claim),
                // A second command that fails within the pause began before it.
                BudgetReason::Drifted if self.pool_pause(&node.pool, now).is_some() => continue,
                BudgetReason::Drifted => (&mut self.pool_failures, &node.pool),
                BudgetReason::Empty | BudgetReason::Unhealthy => continue,
            };
            let failures = Failures::another(known.get(name), now);
            known.insert(name.clone(), failures);
        }
    }

    /// How long drift leaves the pool alone, if it does.
    pub(crate) fn pool_pause(&self, pool: &str, now: Timestamp) -> Option<ReplacementPause> {
        self.pool_failures.get(pool)?.pause(POOL_BACKOFF, now)
    }

    /// How long consolidation buys nothing in place of the claim, if it does not.
    pub(crate) fn claim_pause(&self, claim: &str, now: Timestamp) -> Option<ReplacementPause> {
        self.failures.get(claim)?.pause(CLAIM_BACKOFF, now)
    }

    /// The claim was deleted by its command.
    pub fn note_end(&mut self, claim: &str, pool: &str, now: Timestamp) {
        let reason = self.reasons.remove(claim);
        if reason == Some(BudgetReason::Drifted) {
            self.pool_failures.remove(pool);
        }
        self.failures.remove(claim);
        note(&mut self.finished, pool, Disrupted { at: now, reason });
    }

    /// The node of a claim was told to reboot.
    pub fn note_reboot(&mut self, claim_uid: &str, now: Timestamp) {
        self.reboots.retain(|_, times| {
            times.retain(|at| is_within(DAY_SECONDS - 1, *at, now));
            !times.is_empty()
        });
        let times = self.reboots.entry(claim_uid.to_owned()).or_default();
        times.push_back(now);
    }

    /// Reboots of the claim's node in the last day.
    pub fn reboots(&self, claim_uid: &str, now: Timestamp) -> usize {
        let times = self.reboots.get(claim_uid).into_iter().flatten();
        let recent = times.filter(|at| is_within(DAY_SECONDS - 1, **at, now));
        recent.count()
    }

    /// Why a command about the claim is under way.
    pub fn reason(&self, claim: &str) -> Option<BudgetReason> {
        self.reasons.get(claim).copied()
    }

    /// How busy the pool was.
    pub fn of_pool(&self, pool: &str, now: Timestamp) -> Recent {
        self.recent(pool, now, |_| true)
    }

    /// How busy the pool was for one reason.
    pub(crate) fn of_pool_for(&self, pool: &str, reason: BudgetReason, now: Timestamp) -> Recent {
        self.recent(pool, now, |it| it.reason == Some(reason))
    }

    fn recent(
        &self,
        pool: &str,
        now: Timestamp,
        is_counted: impl Fn(&Disrupted) -> bool,
    ) -> Recent {
        let within = |seconds: i64| {
            count(&self.finished, pool, |it| {
                is_counted(it) && is_within(seconds, it.at, now)
            })
        };
        Recent {
            hour: within(HOUR_SECONDS),
            day: within(DAY_SECONDS),
        }
    }

    /// Nodes of the pool that were disrupted for a reason since a moment, of the last day.
    pub(crate) fn finished_since(&self, pool: &str, reason: BudgetReason, since: Timestamp) -> u32 {
        count(&self.finished, pool, |it| {
            it.reason == Some(reason) && it.at >= since
        })
    }

    /// Replacements for a reason that did not come in the last day.
    pub fn missed(&self, pool: &str, reason: BudgetReason, now: Timestamp) -> u32 {
        count(&self.missed, pool, |it| {
            it.reason == Some(reason) && is_within(DAY_SECONDS, it.at, now)
        })
    }
}

/// Whether a moment was so many seconds ago at most.
fn is_within(seconds: i64, at: Timestamp, now: Timestamp) -> bool {
    now.duration_since(at).as_secs() <= seconds
}

/// A node was disrupted, or should have been.
#[derive(Debug, Clone, Copy)]
struct Disrupted {
    at: Timestamp,
    reason: Option<BudgetReason>,
}

/// Disrupted nodes by pool, oldest first.
type DisruptedNodes = BTreeMap<String, VecDeque<Disrupted>>;

/// Adds a node and lets go of those of more than a day before it, of whichever pool: one that is gone has none to add.
fn note(nodes: &mut DisruptedNodes, pool: &str, node: Disrupted) {
    nodes.entry(pool.to_owned()).or_default().push_back(node);
    let is_old = |it: &Disrupted| !is_within(DAY_SECONDS, it.at, node.at);
    nodes.retain(|_, of_pool| {
        while of_pool.front().is_some_and(is_old) {
            of_pool.pop_front();
        }
        !of_pool.is_empty()
    });
}

fn count(nodes: &DisruptedNodes, pool: &str, is_counted: impl Fn(&Disrupted) -> bool) -> u32 {
    let of_pool = nodes.get(pool).into_iter().flatten();
    let count = of_pool.filter(|it| is_counted(it)).count();
    saturated(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_is_gone_is_forgotten_after_a_day() {
        let at = |hours: i64| Timestamp::from_second(hours * HOUR_SECONDS).unwrap();
        for (hours, kept) in [
            (1, ["gone", "web"].as_slice()),
            (24, &["gone", "web"]),
            (25, &["web"]),
        ] {
            let mut history = History::default();
            history.note_end("a", "gone", at(0));
            history.note_end("b", "web", at(hours));
            let pools: Vec<&String> = history.finished.keys().collect();
            assert_eq!(pools, kept, "after {hours} h");
        }
    }
}
