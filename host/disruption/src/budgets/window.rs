//! When a budget is in force: its schedule, read and held against a moment. Knows no nodes and no hooks.
//!
//! Answers to the schedules of `Budget` in Karpenter's `pkg/apis/v1/nodepool.go`.

use std::num::NonZero;

use apis::duration::GoDuration;
use apis::nodepool::{Budget, BudgetError};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use hooks::columns::saturated;
use jiff::{Timestamp, Zoned, tz::TimeZone};

/// Why the schedule of a budget cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBudget {
    /// The schedule is no cron expression.
    #[error("schedule {schedule:?}: {reason}")]
    Schedule {
        /// The cron expression as written.
        schedule: String,
        /// Fault that the cron parser found.
        reason: String,
    },
    /// The number of nodes.
    #[error("nodes {:?} is neither a number nor a percentage", .0.nodes)]
    Nodes(#[from] BudgetError),
}

/// Whether a budget is in force, and when that changes; `None` where it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BudgetWindow {
    pub(super) is_open: bool,
    pub(super) next_change_seconds: Option<NonZero<u32>>,
}

impl BudgetWindow {
    const ALWAYS: Self = Self {
        is_open: true,
        next_change_seconds: None,
    };
}

pub(super) fn window(budget: &Budget, now: Timestamp) -> Result<BudgetWindow, InvalidBudget> {
    let Some(schedule) = &budget.schedule else {
        return Ok(BudgetWindow::ALWAYS);
    };
    let cron = parse(schedule)?;
    let duration = budget
        .duration
        .unwrap_or(GoDuration::ZERO)
        .to_signed_duration();
    let Ok(from) = now.checked_sub(duration) else {
        return Ok(BudgetWindow::ALWAYS);
    };
    // Strictly after, so that the window is closed at its end.
    let Some(start) = next(&cron, from) else {
        // A day that never comes, such as 30 February: keep the budget, it can only hold back.
        return Ok(BudgetWindow::ALWAYS);
    };
    let is_open = start <= now;
    let change = if is_open {
        start.checked_add(duration).unwrap_or(Timestamp::MAX)
    } else {
        start
    };
    let seconds = saturated(change.duration_since(now).as_secs());
    Ok(BudgetWindow {
        is_open,
        next_change_seconds: Some(NonZero::new(seconds).unwrap_or(NonZero::<u32>::MIN)),
    })
}

pub(super) fn parse(schedule: &str) -> Result<Cron, InvalidBudget> {
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
