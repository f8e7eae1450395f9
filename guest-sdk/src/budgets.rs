//! How many nodes may be disrupted: the hook.

use crate::bindings::exports::mortise::policy::budgets;
use crate::policy::{Context, Policy, PolicyError};

pub use budgets::{Allowance, Allowances, DeclaredBudget, Pool, Reason, Reasons};

/// Judges how many nodes of a pool may be under disruption at this moment.
///
/// The declared budgets still hold after it (unless the binding carries `mortise.dev/authority:
/// replace`), so a policy usually only lowers them.
pub trait BudgetPolicy: Policy {
    /// The allowance of one pool for one reason.
    fn allowed(&self, pool: &Pool, reason: Reason, context: &Context) -> Allowed;

    /// Seconds for which the answer holds; 0 asks again at the next loop.
    fn valid_for_seconds(&self, _pools: &[Pool], _context: &Context) -> u32 {
        0
    }

    /// The whole call. The default asks [`allowed`](Self::allowed) per pool and reason.
    fn allow(&self, context: &Context, pools: &[Pool]) -> Result<Allowances, PolicyError> {
        let mut items = Vec::with_capacity(pools.len() * Reason::ALL.len());
        for (index, pool) in (0_u32..).zip(pools) {
            for reason in Reason::ALL {
                let Allowed { nodes, why } = self.allowed(pool, reason, context);
                items.push(Allowance {
                    pool: index,
                    reason,
                    allowed: nodes,
                    why,
                });
            }
        }
        Ok(Allowances {
            items,
            valid_for: self.valid_for_seconds(pools, context),
        })
    }
}

/// Nodes at once, those already under way included, and why so many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// How many.
    pub nodes: u32,
    /// For the record.
    pub why: String,
}

impl Reason {
    /// All of them, in the order of [`Pool::disrupting`].
    pub const ALL: [Self; 3] = [Self::Underutilized, Self::Empty, Self::Drifted];

    /// The set of this one reason.
    pub fn as_set(self) -> Reasons {
        match self {
            Self::Underutilized => Reasons::UNDERUTILIZED,
            Self::Empty => Reasons::EMPTY,
            Self::Drifted => Reasons::DRIFTED,
        }
    }
}

impl Pool {
    /// A label of the NodePool object.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The smallest declared budget that is active for the reason; `u32::MAX` when none is.
    pub fn declared_allowed(&self, reason: Reason) -> u32 {
        self.declared
            .iter()
            .filter(|budget| budget.active && budget.reasons.contains(reason.as_set()))
            .map(|budget| budget.resolved)
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Nodes under disruption now, whatever the reason.
    pub fn disrupting_total(&self) -> u32 {
        self.disrupting.iter().sum()
    }
}
