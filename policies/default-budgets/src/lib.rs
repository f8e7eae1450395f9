//! The built-in budget policy: what the NodePools declare, nothing else.
//!
//! Answers to Karpenter's `NodePool.MustGetAllowedDisruptions`; windows and percentages are resolved by
//! the host, which also caps every answer by them.

use guest_sdk::{Allowed, BudgetPolicy, Context, Policy, Pool, Reason, Settings};

/// The declared budgets.
#[derive(Debug)]
pub struct DefaultBudgets;

impl Policy for DefaultBudgets {
    const NAME: &'static str = "default-budgets";
    const SUMMARY: &'static str = "the declared budgets";

    fn configure(_settings: &mut Settings) -> Self {
        Self
    }
}

impl BudgetPolicy for DefaultBudgets {
    fn allowed(&self, pool: &Pool, reason: Reason, _context: &Context) -> Allowed {
        Allowed {
            nodes: pool.declared_allowed(reason),
            why: "declared budgets".to_owned(),
        }
    }
}

guest_sdk::export_policy!(budgets: DefaultBudgets);

#[cfg(test)]
mod tests {
    use super::DefaultBudgets;
    use guest_sdk::testing::{Harness, pool};
    use guest_sdk::{Reason, Reasons};

    #[test]
    fn the_smallest_active_budget_of_the_reason_holds() {
        let mut web = pool("web", 20, &[5, 2]);
        web.declared[1].reasons = Reasons::DRIFTED;
        let mut idle = pool("idle", 3, &[1]);
        idle.declared[0].active = false;
        let policy = Harness::<DefaultBudgets>::new("").unwrap();
        let answer = policy.allow(&[web, idle]).unwrap();
        let found: Vec<_> = answer
            .items
            .iter()
            .map(|it| (it.pool, it.reason, it.allowed))
            .collect();
        assert_eq!(
            found,
            [
                (0, Reason::Underutilized, 5),
                (0, Reason::Empty, 5),
                (0, Reason::Drifted, 2),
                (1, Reason::Underutilized, u32::MAX),
                (1, Reason::Empty, u32::MAX),
                (1, Reason::Drifted, u32::MAX),
            ]
        );
    }
}
