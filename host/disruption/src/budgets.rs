//! How many nodes of each pool may be disrupted now: declared budgets, the policy's say, the host's minimum.
//!
//! A policy can only narrow what the budgets declare, unless its binding was given authority to replace
//! them. What cannot be understood allows nothing. Answers to Karpenter's `NodePool.GetAllowedDisruptions`
//! and `disruption/helpers.go` (`BuildDisruptionBudgetMapping`).

pub(crate) mod pools;

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::NodePool;
use apis::duration::GoDuration;
use apis::nodepool::{Budget, DisruptionReason};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use scheduling::ranking::PolicyUse;
use state::Snapshot;

use crate::hooks::{
    Allowance, BudgetPool, BudgetReason, BudgetReasons, BudgetRound, BudgetsHook, Context,
    DeclaredBudget,
};
pub use pools::{BudgetWorld, Targets, pools, targets};

/// What may still be disrupted in this loop.
#[derive(Debug, Clone, Default)]
pub struct Budgets {
    remaining: BTreeMap<(String, BudgetReason), u32>,
    /// Per pool, those without nodes too, and reason: what was allowed, what was already under way, and why.
    pub details: Vec<BudgetDetail>,
    /// Policies that took part.
    pub uses: Vec<PolicyUse>,
    /// Ask again no later than this (0: at the next loop).
    pub valid_for_seconds: u32,
}

/// How one number came about, for metrics, events and records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetDetail {
    /// NodePool.
    pub pool: String,
    /// For what.
    pub reason: BudgetReason,
    /// Nodes at once.
    pub allowed: u32,
    /// Nodes that use the budget up already.
    pub consuming: u32,
    /// Nodes of the pool that count.
    pub total: u32,
    /// Who decided.
    pub why: String,
}

impl Budgets {
    /// Asks the policy, then takes the host's minimum.
    pub fn ask(world: &BudgetWorld<'_>, context: Context, hook: &dyn BudgetsHook) -> Self {
        let (snapshot, now) = (world.snapshot, world.now);
        let pools = pools(world);
        let details = without_nodes(snapshot, &pools, now);
        if pools.is_empty() {
            return Self {
                details,
                ..Self::default()
            };
        }
        let round = BudgetRound { context, pools };
        let answer = hook.allow(&round);
        let mut budgets = Self {
            uses: answer.uses,
            valid_for_seconds: answer.valid_for_seconds,
            details,
            ..Self::default()
        };
        let invalid = invalid(snapshot, now);
        let rebooting = rebooting(snapshot);
        for (index, pool) in (0_u32..).zip(&round.pools) {
            let rebooting = rebooting.get(pool.name.as_str()).copied();
            for reason in BudgetReason::ALL {
                let asked = answer
                    .items
                    .iter()
                    .find(|it| it.pool == index && it.reason == reason);
                let (allowed, mut why) = combine(pool.declared_allowed(reason), asked);
                if let Some(error) = invalid.get(&pool.name).filter(|_| allowed == 0) {
                    why = format!("a budget cannot be understood: {error}");
                }
                let consuming = match reason {
                    // Sick nodes are what repair is for, so they do not use up its budget.
                    BudgetReason::Unhealthy => pool.deleting + rebooting.unwrap_or_default(),
                    BudgetReason::Underutilized | BudgetReason::Empty | BudgetReason::Drifted => {
                        pool.not_ready + pool.deleting
                    }
                };
                budgets.remaining.insert(
                    (pool.name.clone(), reason),
                    allowed.saturating_sub(consuming),
                );
                budgets.details.push(BudgetDetail {
                    pool: pool.name.clone(),
                    reason,
                    allowed,
                    consuming,
                    total: pool.total,
                    why,
                });
            }
        }
        budgets
    }

    /// Nodes of a pool that may still go for the reason.
    pub fn remaining(&self, pool: &str, reason: BudgetReason) -> u32 {
        self.remaining
            .get(&(pool.to_owned(), reason))
            .copied()
            .unwrap_or(0)
    }

    /// Takes one node out of the budget; false when there is none left.
    pub fn take(&mut self, pool: &str, reason: BudgetReason) -> bool {
        match self.remaining.get_mut(&(pool.to_owned(), reason)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether one node of each of these pools, as often as it is named, may go together.
    pub fn admit<'p>(
        &self,
        mut pools: impl Iterator<Item = &'p str>,
        reason: BudgetReason,
    ) -> bool {
        let mut left = self.clone();
        pools.all(|pool| left.take(pool, reason))
    }

    /// Why a pool's budget is what it is.
    pub fn why(&self, pool: &str, reason: BudgetReason) -> String {
        self.details
            .iter()
            .find(|it| it.pool == pool && it.reason == reason)
            .map(|it| {
                format!(
                    "{} of {} nodes allowed at once, {} under way: {}",
                    it.allowed, it.total, it.consuming, it.why
                )
            })
            .unwrap_or_default()
    }
}

/// The host's minimum: a policy narrows, and widens only with authority.
fn combine(declared: u32, asked: Option<&Allowance>) -> (u32, String) {
    match asked {
        Some(it) if it.replaces_declared => (it.allowed, it.why.clone()),
        Some(it) if it.allowed < declared => (it.allowed, it.why.clone()),
        Some(it) if it.allowed == declared => (declared, it.why.clone()),
        Some(_) | None => (declared, "declared budgets".to_owned()),
    }
}

/// What the pools without nodes would allow. No policy is asked about them, as there is nothing to disrupt.
fn without_nodes(snapshot: &Snapshot, others: &[BudgetPool], now: Timestamp) -> Vec<BudgetDetail> {
    let of_pool = |pool: &NodePool| {
        let name = pool.metadata.name.clone().unwrap_or_default();
        let pool = BudgetPool {
            declared: declared(pool, 0, now),
            ..BudgetPool::default()
        };
        let detail = move |reason| BudgetDetail {
            pool: name.clone(),
            reason,
            allowed: pool.declared_allowed(reason),
            consuming: 0,
            total: 0,
            why: "declared budgets".to_owned(),
        };
        BudgetReason::ALL.into_iter().map(detail)
    };
    let is_empty = |pool: &&Arc<NodePool>| {
        let name = pool.metadata.name.as_deref();
        others.iter().all(|it| Some(it.name.as_str()) != name)
    };
    let pools = snapshot.node_pools().filter(is_empty);
    pools.flat_map(|it| of_pool(it)).collect()
}

/// Nodes that reboot and are not going, by pool.
fn rebooting(snapshot: &Snapshot) -> BTreeMap<&str, u32> {
    let mut counts = BTreeMap::new();
    for node in snapshot.nodes().filter(|it| !it.is_marked_for_deletion()) {
        let claim = node.claim.as_ref();
        let is_rebooting = claim.is_some_and(|it| {
            it.conditions.rebooting_at.is_some() && it.conditions.instance_terminating_at.is_none()
        });
        if let Some(pool) = node.node_pool().filter(|_| is_rebooting) {
            *counts.entry(pool).or_default() += 1;
        }
    }
    counts
}

/// The budgets of a pool, resolved against its number of nodes.
pub fn declared(pool: &NodePool, total: u32, now: Timestamp) -> Vec<DeclaredBudget> {
    pool.spec
        .disruption
        .budgets
        .iter()
        .map(|budget| resolve(budget, total, now))
        .collect()
}

fn resolve(budget: &Budget, total: u32, now: Timestamp) -> DeclaredBudget {
    match (budget.allowed_nodes(), window(budget, now)) {
        (Ok(nodes), Ok(window)) => DeclaredBudget {
            nodes: budget.nodes.clone(),
            resolved: nodes.of(total),
            active: window.is_open,
            next_change_seconds: window.next_change_seconds,
            reasons: BudgetReasons {
                underutilized: budget.covers(DisruptionReason::Underutilized),
                empty: budget.covers(DisruptionReason::Empty),
                drifted: budget.covers(DisruptionReason::Drifted),
                unhealthy: budget.covers(DisruptionReason::Unhealthy),
            },
        },
        // Nobody knows what the author meant, so nothing may go, for any reason.
        (Err(_), _) | (_, Err(_)) => DeclaredBudget {
            nodes: budget.nodes.clone(),
            resolved: 0,
            active: true,
            next_change_seconds: 0,
            reasons: BudgetReasons::ALL,
        },
    }
}

/// Why the schedule of a budget cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBudget {
    /// The cron text.
    #[error("schedule {schedule:?}: {reason}")]
    Schedule {
        /// As written.
        schedule: String,
        /// What is wrong.
        reason: String,
    },
    /// The number of nodes.
    #[error("nodes {0:?} is neither a number nor a percentage")]
    Nodes(String),
}

/// The first thing wrong with the budgets of each pool.
fn invalid(snapshot: &Snapshot, now: Timestamp) -> BTreeMap<String, InvalidBudget> {
    let first = |pool: &NodePool| {
        pool.spec.disruption.budgets.iter().find_map(|budget| {
            let nodes = budget.allowed_nodes().err();
            let nodes = nodes.map(|_| InvalidBudget::Nodes(budget.nodes.clone()));
            nodes.or_else(|| window(budget, now).err())
        })
    };
    let name = |pool: &NodePool| pool.metadata.name.clone().unwrap_or_default();
    let pools = snapshot.node_pools();
    pools
        .filter_map(|pool| Some((name(pool), first(pool)?)))
        .collect()
}

/// Whether a budget is in force, and when that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BudgetWindow {
    is_open: bool,
    next_change_seconds: u32,
}

fn window(budget: &Budget, now: Timestamp) -> Result<BudgetWindow, InvalidBudget> {
    let Some(schedule) = &budget.schedule else {
        return Ok(BudgetWindow {
            is_open: true,
            next_change_seconds: 0,
        });
    };
    let cron = parse(schedule)?;
    let duration = budget
        .duration
        .unwrap_or(GoDuration::ZERO)
        .to_signed_duration();
    let always = BudgetWindow {
        is_open: true,
        next_change_seconds: 0,
    };
    let Ok(from) = now.checked_sub(duration) else {
        return Ok(always);
    };
    // Strictly after, so that the window is closed at its end.
    let Some(start) = next(&cron, from) else {
        // A day that never comes, such as 30 February: keep the budget, it can only hold back.
        return Ok(always);
    };
    let is_open = start <= now;
    let change = if is_open {
        start.checked_add(duration).unwrap_or(Timestamp::MAX)
    } else {
        start
    };
    let seconds = change.duration_since(now).as_secs().max(1);
    Ok(BudgetWindow {
        is_open,
        next_change_seconds: u32::try_from(seconds).unwrap_or(u32::MAX),
    })
}

fn parse(schedule: &str) -> Result<Cron, InvalidBudget> {
    let invalid = |reason: &str| InvalidBudget::Schedule {
        schedule: schedule.to_owned(),
        reason: reason.to_owned(),
    };
    let text = schedule.trim();
    if text.starts_with('@')
        && ![
            "@annually",
            "@yearly",
            "@monthly",
            "@weekly",
            "@daily",
            "@midnight",
            "@hourly",
        ]
        .contains(&text)
    {
        return Err(invalid("unknown macro"));
    }
    if text == "@midnight" {
        return parse("@daily");
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser
        .parse(text)
        .map_err(|error| invalid(&error.to_string()))
}

fn next(cron: &Cron, after: Timestamp) -> Option<Timestamp> {
    let from: Zoned = after.to_zoned(TimeZone::UTC);
    cron.find_next_occurrence(&from, false)
        .ok()
        .map(|it| it.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(
        nodes: &str,
        schedule: Option<(&str, i64)>,
        reasons: Option<Vec<DisruptionReason>>,
    ) -> Budget {
        Budget {
            nodes: nodes.to_owned(),
            schedule: schedule.map(|it| it.0.to_owned()),
            duration: schedule.map(|it| GoDuration::from_seconds(it.1)),
            reasons,
        }
    }

    fn allowed(budgets: &[Budget], total: u32, now: &str, reason: BudgetReason) -> u32 {
        let now = now.parse().unwrap();
        BudgetPool {
            declared: budgets.iter().map(|it| resolve(it, total, now)).collect(),
            ..BudgetPool::default()
        }
        .declared_allowed(reason)
    }

    #[test]
    fn a_budget_is_in_force_from_its_start_until_just_before_its_end() {
        // 2026-11-20 is a Friday.
        let weekdays = [budget("0", Some(("0 9 * * mon-fri", 8 * 3600)), None)];
        for (now, expected) in [
            ("2026-11-20T08:59:59Z", u32::MAX),
            ("2026-11-20T09:00:00Z", 0),
            ("2026-11-20T16:59:59Z", 0),
            ("2026-11-20T17:00:00Z", u32::MAX),
            ("2026-11-21T12:00:00Z", u32::MAX),
        ] {
            assert_eq!(
                allowed(&weekdays, 10, now, BudgetReason::Empty),
                expected,
                "{now}"
            );
        }
    }

    #[test]
    fn the_least_budget_that_covers_the_reason_counts() {
        use DisruptionReason::{Drifted, Empty};
        let drift_off = budget("0", None, Some(vec![Drifted]));
        for (budgets, total, reason, expected) in [
            (
                vec![budget("20%", None, None), drift_off.clone()],
                19,
                BudgetReason::Drifted,
                0,
            ),
            (
                vec![budget("20%", None, None), drift_off],
                19,
                BudgetReason::Underutilized,
                4,
            ),
            (
                vec![budget("5", None, Some(vec![Empty]))],
                19,
                BudgetReason::Drifted,
                u32::MAX,
            ),
            (vec![budget("10%", None, None)], 1, BudgetReason::Empty, 1),
            (vec![budget("0%", None, None)], 100, BudgetReason::Empty, 0),
            (
                vec![budget("3", None, Some(vec![]))],
                10,
                BudgetReason::Empty,
                u32::MAX,
            ),
            (vec![], 10, BudgetReason::Empty, u32::MAX),
        ] {
            let got = allowed(&budgets, total, "2026-11-20T08:00:00Z", reason);
            assert_eq!(got, expected, "{budgets:?} {reason:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_allows_nothing() {
        for bad in [
            budget("100", Some(("not a schedule at all", 3600)), None),
            budget("100", Some(("61 * * * *", 3600)), None),
            budget("100", Some(("* * * * * *", 3600)), None),
            budget("100", Some(("@never", 3600)), None),
            budget("ten", None, None),
            budget(
                "100",
                Some(("61 * * * *", 3600)),
                Some(vec![DisruptionReason::Drifted]),
            ),
        ] {
            let got = allowed(
                std::slice::from_ref(&bad),
                10,
                "2026-11-20T08:00:00Z",
                BudgetReason::Empty,
            );
            assert_eq!(got, 0, "{bad:?}");
        }
    }

    #[test]
    fn a_policy_narrows_and_only_authority_widens() {
        let asked = |allowed, replaces_declared| Allowance {
            pool: 0,
            reason: BudgetReason::Empty,
            allowed,
            why: "policy".to_owned(),
            replaces_declared,
        };
        for (declared, asked, expected) in [
            (5, None, 5),
            (5, Some(asked(2, false)), 2),
            (5, Some(asked(9, false)), 5),
            (5, Some(asked(9, true)), 9),
        ] {
            assert_eq!(combine(declared, asked.as_ref()).0, expected);
        }
    }

    #[test]
    fn macros_and_windows_tell_their_next_change() {
        let daily = budget("0", Some(("@daily", 3600)), None);
        let at = |now: &str| resolve(&daily, 10, now.parse().unwrap());
        let open = at("2026-11-20T00:30:00Z");
        assert!(open.active);
        assert_eq!(open.next_change_seconds, 1800);
        let closed = at("2026-11-20T23:00:00Z");
        assert!(!closed.active);
        assert_eq!(closed.next_change_seconds, 3600);
    }
}
