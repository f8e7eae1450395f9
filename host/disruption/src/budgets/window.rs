//! When a budget is in force: its schedule held against a moment. Knows no nodes and no hooks.
//!
//! Answers to the schedules of `Budget` in Karpenter's `pkg/apis/v1/nodepool.go`.

use std::num::NonZero;

use apis::duration::GoDuration;
use apis::{Budget, BudgetError};
use croner::Cron;
use hooks::columns::saturated;
use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};

use super::schedule;

/// So many windows that open before the one before them closes are followed.
const WINDOWS_MAX: usize = 48;
/// Windows that follow each other for longer than this, as far as is looked, never close.
const NEVER_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Why a budget cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBudget {
    /// The schedule is no cron expression.
    #[error("schedule {schedule:?}: {reason}")]
    Schedule {
        /// The cron expression as written.
        schedule: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The number of nodes.
    #[error(transparent)]
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
    let cron = schedule::parse(schedule).map_err(|reason| InvalidBudget::Schedule {
        schedule: schedule.clone(),
        reason,
    })?;
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
        close(&cron, start, duration)
    } else {
        Some(start)
    };
    let seconds = |change: Timestamp| {
        let seconds = saturated(change.duration_since(now).as_secs());
        NonZero::new(seconds).unwrap_or(NonZero::<u32>::MIN)
    };
    Ok(BudgetWindow {
        is_open,
        next_change_seconds: change.map(seconds),
    })
}

/// When the window that opens at a moment closes with none open that opened meanwhile; `None` where that does not
/// happen.
fn close(cron: &Cron, start: Timestamp, duration: SignedDuration) -> Option<Timestamp> {
    let end = |opened: Timestamp| opened.checked_add(duration).unwrap_or(Timestamp::MAX);
    let mut last = start;
    for _ in 0..WINDOWS_MAX {
        match last_until(cron, end(last)).filter(|it| *it > last) {
            Some(later) => last = later,
            None => return Some(end(last)),
        }
    }
    Some(end(last)).filter(|it| it.duration_since(start) <= NEVER_AFTER)
}

/// The last start at a moment or before it.
fn last_until(cron: &Cron, at: Timestamp) -> Option<Timestamp> {
    let until: Zoned = at.to_zoned(TimeZone::UTC);
    cron.find_previous_occurrence(&until, true)
        .ok()
        .map(|it| it.timestamp())
}

fn next(cron: &Cron, after: Timestamp) -> Option<Timestamp> {
    let from: Zoned = after.to_zoned(TimeZone::UTC);
    cron.find_next_occurrence(&from, false)
        .ok()
        .map(|it| it.timestamp())
}
