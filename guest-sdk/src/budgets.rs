//! How many nodes may be disrupted: the hook.

use crate::bindings::exports::mortise::policy::budgets;
use crate::policy::{Context, NEVER, Policy, PolicyError};

pub use budgets::{Activity, Allowance, Allowances, DeclaredBudget, Pool, Reason, Reasons};

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

    /// What the next call is to be given as `context.memory`, 4 KiB at most; `None` leaves it. Kept where
    /// [`Policy::NEEDS`] names [`Memory`](crate::Need::Memory).
    fn remember(&self, _pools: &[Pool], _context: &Context) -> Option<Vec<u8>> {
        None
    }

    /// The whole call. The default asks [`allowed`](Self::allowed) per pool and reason of [`Reason::JUDGED`].
    fn allow(&self, context: &Context, pools: &[Pool]) -> Result<Allowances, PolicyError> {
        let mut items = Vec::with_capacity(pools.len() * Reason::JUDGED.len());
        for (index, pool) in (0_u32..).zip(pools) {
            for reason in Reason::JUDGED {
                let Allowed { nodes, why } = self.allowed(pool, reason, context);
                items.push(Allowance {
                    pool: index,
                    reason,
                    allowed: nodes,
                    why,
                    extra: Vec::new(),
                });
            }
        }
        Ok(Allowances {
            items,
            valid_for: self.valid_for_seconds(pools, context),
            memory: self.remember(pools, context),
            extra: Vec::new(),
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
    /// Those that a pool tells of, in the order of [`Pool::activity`].
    pub const ALL: [Self; 4] = [
        Self::Underutilized,
        Self::Empty,
        Self::Drifted,
        Self::Unhealthy,
    ];

    /// Those that a policy is asked about; it may speak of repair too.
    pub const JUDGED: [Self; 3] = [Self::Underutilized, Self::Empty, Self::Drifted];

    /// The set of this one reason.
    pub fn as_set(self) -> Reasons {
        match self {
            Self::Underutilized => Reasons::UNDERUTILIZED,
            Self::Empty => Reasons::EMPTY,
            Self::Drifted => Reasons::DRIFTED,
            Self::Unhealthy => Reasons::UNHEALTHY,
            Self::Other => Reasons::OTHER,
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

    /// What was and is done for one reason.
    pub fn activity_of(&self, reason: Reason) -> Option<&Activity> {
        self.activity.iter().find(|it| it.reason == reason)
    }

    /// Nodes under disruption now for one reason.
    pub fn disrupting(&self, reason: Reason) -> u32 {
        self.activity_of(reason).map_or(0, |it| it.disrupting)
    }

    /// Nodes under disruption now, whatever the reason.
    pub fn disrupting_total(&self) -> u32 {
        self.sum(|it| it.disrupting)
    }

    /// Disruptions finished in the last hour, whatever the reason.
    pub fn recent_hour(&self) -> u32 {
        self.sum(|it| it.recent_hour)
    }

    /// Disruptions finished in the last day, whatever the reason.
    pub fn recent_day(&self) -> u32 {
        self.sum(|it| it.recent_day)
    }

    /// Seconds since `drift_target` changed; `None` when the controller has not seen it change.
    pub fn target_age_seconds(&self) -> Option<u32> {
        Some(self.target_age).filter(|&age| age != NEVER)
    }

    fn sum(&self, count: fn(&Activity) -> u32) -> u32 {
        let counts = self.activity.iter().map(count);
        counts.fold(0, u32::saturating_add)
    }
}
