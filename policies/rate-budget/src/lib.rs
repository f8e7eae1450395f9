//! A budget policy: so many disruptions an hour and a day, within the declared budgets.
//!
//! `{"perHour": 5, "perDay": 20}` counts what finished; what is under way uses up what is left.

use guest_sdk::{Allowed, BudgetPolicy, Context, Policy, Pool, Reason, Settings};

/// Holds the rate.
#[derive(Debug)]
pub struct RateBudget {
    per_hour: u32,
    per_day: u32,
}

impl Policy for RateBudget {
    const NAME: &'static str = "rate-budget";
    const SUMMARY: &'static str = "so many disruptions an hour and a day";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"perHour":{"type":"integer","minimum":0,"default":10},"perDay":{"type":"integer","minimum":0,"default":100}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            per_hour: settings.integer("perHour", 10),
            per_day: settings.integer("perDay", 100),
        }
    }
}

impl BudgetPolicy for RateBudget {
    fn allowed(&self, pool: &Pool, reason: Reason, _context: &Context) -> Allowed {
        let left_of_hour = self.per_hour.saturating_sub(pool.recent_hour());
        let left_of_day = self.per_day.saturating_sub(pool.recent_day());
        let (nodes, why) = if left_of_hour <= left_of_day {
            (left_of_hour, "the rate of an hour")
        } else {
            (left_of_day, "the rate of a day")
        };
        // The host takes off what is under way for whatever reason, as the answer is how many at once.
        let declared = pool.declared_allowed(reason);
        if declared <= nodes {
            return Allowed {
                nodes: declared,
                why: "declared budgets".to_owned(),
            };
        }
        Allowed {
            nodes,
            why: why.to_owned(),
        }
    }
}

guest_sdk::export_policy!(budgets: RateBudget);

#[cfg(test)]
mod tests {
    use super::RateBudget;
    use guest_sdk::testing::{Counts, Harness, activity, pool};
    use guest_sdk::{Pool, Reason};

    #[test]
    fn the_rate_is_used_up_by_what_finished_and_not_by_what_the_host_takes_off() {
        let done = |recent_hour, recent_day, disrupting| Counts {
            recent_hour,
            recent_day,
            disrupting,
            ..Counts::default()
        };
        let none = Counts::default();
        for (underutilized, empty, expected) in [
            (none, none, 5),
            (done(3, 3, 0), none, 2),
            (done(2, 2, 1), done(1, 1, 0), 2),
            (done(3, 3, 0), done(0, 0, 1), 2),
            (none, done(0, 0, 2), 5),
            (done(5, 5, 0), done(4, 4, 0), 0),
            (done(0, 19, 0), none, 1),
        ] {
            let pool = Pool {
                activity: activity(&[
                    (Reason::Underutilized, underutilized),
                    (Reason::Empty, empty),
                ]),
                ..pool("web", 100, &[10])
            };
            let policy = Harness::<RateBudget>::new(r#"{"perHour": 5, "perDay": 20}"#).unwrap();
            let allowances = policy.allow(&[pool]).unwrap();
            let found = allowances
                .items
                .iter()
                .find(|it| it.reason == Reason::Underutilized);
            assert_eq!(
                found.unwrap().allowed,
                expected,
                "{underutilized:?} {empty:?}"
            );
        }
    }

    #[test]
    fn the_declared_budget_still_holds() {
        let policy = Harness::<RateBudget>::new("").unwrap();
        let allowances = policy.allow(&[pool("web", 100, &[1])]).unwrap();
        assert!(allowances.items.iter().all(|it| it.allowed == 1));
    }
}
