//! A budget policy: drift goes to a few nodes first, and faster once they went well.
//!
//! `{"first": 1, "factor": 2}`: one node of a pool is replaced, then as many as twice those that finished
//! in the last day, within the declared budgets. While a node of the pool is not ready, nothing new starts.

use guest_sdk::{Allowed, BudgetPolicy, Context, Policy, Pool, Reason, Settings};

/// Rolls drift out in growing steps.
#[derive(Debug)]
pub struct CanaryRollout {
    first: u32,
    factor: u32,
}

impl Policy for CanaryRollout {
    const NAME: &'static str = "canary-rollout";
    const SUMMARY: &'static str = "drift goes to a few nodes first, then to more";
    const CONFIG_SCHEMA: &'static str = r#"{"type":"object","additionalProperties":false,"properties":{"first":{"type":"integer","minimum":0,"default":1,"description":"nodes of the first step"},"factor":{"type":"integer","minimum":0,"default":2,"description":"nodes of a step for each that finished"}}}"#;

    fn configure(settings: &mut Settings) -> Self {
        Self {
            first: settings.integer("first", 1),
            factor: settings.integer("factor", 2),
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
        if pool.not_ready > 0 {
            return Allowed {
                nodes: 0,
                why: "a node is not ready".to_owned(),
            };
        }
        let step = self.first.max(pool.recent_day.saturating_mul(self.factor));
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
    use guest_sdk::testing::{Harness, pool};
    use guest_sdk::{Pool, Reason};

    #[test]
    fn drift_grows_with_what_went_well() {
        for (recent_day, not_ready, expected) in
            [(0, 0, 1), (1, 0, 2), (4, 0, 8), (50, 0, 10), (4, 1, 0)]
        {
            let pool = Pool {
                recent_day,
                not_ready,
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
                    "{recent_day} {not_ready} {:?}",
                    it.reason
                );
            }
        }
    }
}
