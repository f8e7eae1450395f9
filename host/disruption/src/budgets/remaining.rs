//! What budgets leave: counted down in a copy, without what explains them.

use std::collections::BTreeMap;

use hooks::disruption::BudgetReason;

/// Nodes that may still be disrupted, by pool, and for each reason at the position [`BudgetReason::index`].
#[derive(Debug, Clone, Default)]
pub(crate) struct Remaining(BTreeMap<String, [u32; BudgetReason::ALL.len()]>);

impl Remaining {
    /// Notes what a pool's budgets leave.
    pub(super) fn insert(&mut self, pool: String, left: [u32; BudgetReason::ALL.len()]) {
        self.0.insert(pool, left);
    }

    /// Nodes of a pool that may still go for the reason.
    pub(crate) fn of(&self, pool: &str, reason: BudgetReason) -> u32 {
        self.0.get(pool).map_or(0, |left| left[reason.index()])
    }

    /// Takes one node out of the budget; false when there is none left.
    pub(crate) fn take(&mut self, pool: &str, reason: BudgetReason) -> bool {
        let left = self.0.get_mut(pool).map(|left| &mut left[reason.index()]);
        let Some(left) = left.filter(|it| **it > 0) else {
            return false;
        };
        *left -= 1;
        true
    }

    /// Whether one node of each of these pools, as often as it is named, may go together.
    pub(crate) fn admit<'p>(
        &self,
        mut pools: impl Iterator<Item = &'p str>,
        reason: BudgetReason,
    ) -> bool {
        let mut left = self.clone();
        pools.all(|pool| left.take(pool, reason))
    }
}
