//! A budget policy: drift goes to a few nodes first, and faster once they went well.
//!
//! `{"first": 1, "factor": 2}`: one node of a pool is replaced, then as many as twice those renewed since what nodes
//! are made of last changed, within the declared budgets: each roll-out begins anew, and what consolidation does counts
//! for nothing. While a node of the pool is not ready, or more than `failures` (0) replacements for drift did not come
//! in the last day, nothing new starts.

use guest_sdk::{Allowed, BudgetPolicy, Context, Policy, Pool, Reason, Settings};

/// Rolls drift out in growing steps.
#[derive(Debug)]
pub struct CanaryRollout {
    first: u32,
    factor: u32,
    failures: u32,
}

impl Policy for CanaryRollout {
    const NAME: &'static str = "canary-rollout";
    const SUMMARY: &'static str = "drift goes to a few nodes first, then to more";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"first":{"type":"integer","minimum":0,"default":1,"description":"nodes of the first step"},"factor":{"type":"integer","minimum":0,"default":2,"description":"nodes of a step for each that was renewed"},"failures":{"type":"integer","minimum":0,"default":0,"description":"replacements that may fail in a day before the roll-out stops"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            first: settings.integer("first", 1),
            factor: settings.integer("factor", 2),
            failures: settings.integer("failures", 0),
        }
    }
}

impl BudgetPolicy for CanaryRollout {
    fn allowed(&self, pool: &Pool, reason: Reason, _context: &Context) -> Allowed {
        let declared = pool.declared_allowed(reason);
        if reason != Reason::Drifted {
            return Allowed {
                nodes: declared,
                why: "declared budgets".to_owned(),
            };
        }
        let none = |why: &str| Allowed {
            nodes: 0,
            why: why.to_owned(),
        };
        if pool.not_ready > 0 {
            return none("a node is not ready");
        }
        let failed = pool.activity_of(reason).map_or(0, |it| it.failed_day);
        if failed > self.failures {
            return none("replacements did not come");
        }
        let step = self.first.max(pool.renewed.saturating_mul(self.factor));
        Allowed {
            nodes: declared.min(step),
            why: ["step of ", &step.to_string()].concat(),
        }
    }
}

guest_sdk::export_policy!(budgets: CanaryRollout);

#[cfg(test)]
mod tests {
    use super::CanaryRollout;
    use guest_sdk::testing::{Counts, Harness, activity, pool};
    use guest_sdk::{Pool, Reason};

    #[test]
    fn drift_grows_with_what_went_well() {
        for (renewed, not_ready, failed_day, expected) in [
            (0, 0, 0, 1),
            (1, 0, 0, 2),
            (4, 0, 0, 8),
            (50, 0, 0, 10),
            (4, 1, 0, 0),
            (4, 0, 1, 0),
        ] {
            let drifted = Counts {
                failed_day,
                ..Counts::default()
            };
            // What consolidation did says nothing of the new image.
            let consolidated = Counts {
                recent_day: 50,
                failed_day: 3,
                ..Counts::default()
            };
            let pool = Pool {
                renewed,
                not_ready,
                activity: activity(&[
                    (Reason::Drifted, drifted),
                    (Reason::Underutilized, consolidated),
                ]),
                ..pool("web", 100, &[10])
            };
            let policy = Harness::<CanaryRollout>::new("").unwrap();
            for it in policy.allow(&[pool]).unwrap().items {
                let expected = if it.reason == Reason::Drifted {
                    expected
                } else {
                    10
                };
                assert_eq!(
                    it.allowed, expected,
                    "{renewed} {not_ready} {failed_day} {:?}",
                    it.reason
                );
            }
        }
    }
}
