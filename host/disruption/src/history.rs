//! What disruption did lately, as far as policies and budgets ask for it.
//!
//! Owned by the shell, which tells it of every command; bounded to one day.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use crate::hooks::BudgetReason;

const HOUR_SECONDS: i64 = 3_600;
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
    finished: BTreeMap<String, VecDeque<Timestamp>>,
    reasons: BTreeMap<String, BudgetReason>,
}

impl History {
    /// A command about the claim began.
    pub fn started(&mut self, claim: &str, reason: BudgetReason) {
        self.reasons.insert(claim.to_owned(), reason);
    }

    /// The command about the claim was given up.
    pub fn abandoned(&mut self, claim: &str) {
        self.reasons.remove(claim);
    }

    /// The claim was deleted by its command.
    pub fn finished(&mut self, claim: &str, pool: &str, now: Timestamp) {
        self.reasons.remove(claim);
        let times = self.finished.entry(pool.to_owned()).or_default();
        times.push_back(now);
        while times
            .front()
            .is_some_and(|&at| now.duration_since(at).as_secs() > DAY_SECONDS)
        {
            times.pop_front();
        }
    }

    /// Why a command about the claim is under way.
    pub fn reason(&self, claim: &str) -> Option<BudgetReason> {
        self.reasons.get(claim).copied()
    }

    /// How busy the pool was.
    pub fn of_pool(&self, pool: &str, now: Timestamp) -> Recent {
        let within = |seconds: i64| {
            let count = self
                .finished
                .get(pool)
                .into_iter()
                .flatten()
                .filter(|&&at| now.duration_since(at).as_secs() <= seconds)
                .count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        Recent {
            hour: within(HOUR_SECONDS),
            day: within(DAY_SECONDS),
        }
    }
}
