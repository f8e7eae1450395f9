//! The hook through which policies say how many nodes of a pool may be disrupted.
//!
//! Mirrors the interface `budgets` of `mortise:policy`; judges nothing.

use serde::{Deserialize, Serialize};

use super::{Context, PolicyUse};

/// Judges how many nodes may be disrupted at this moment. One call a disruption loop.
pub trait BudgetsHook: Send + Sync {
    /// Allowances per pool and reason.
    fn allow(&self, round: &BudgetRound) -> AllowAnswer;
}

/// Input of [`BudgetsHook::allow`]: the pools to judge.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetRound {
    /// Time, cluster and decision of the call.
    pub context: Context,
    /// The pools that have nodes.
    pub pools: Vec<BudgetPool>,
}

/// The reasons a budget distinguishes, in the order of the WIT enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BudgetReason {
    /// Consolidation of nodes whose pods fit elsewhere or on cheaper nodes.
    Underutilized,
    /// Removal of nodes on which nothing is worth moving.
    Empty,
    /// Renewal of nodes that no longer match their definition.
    Drifted,
    /// Repair of sick nodes.
    Unhealthy,
}

impl BudgetReason {
    /// All reasons, in the order of the WIT enum.
    pub const ALL: [Self; 4] = [
        Self::Underutilized,
        Self::Empty,
        Self::Drifted,
        Self::Unhealthy,
    ];

    /// Those that policies are asked about; repair they may hold back too, but need not speak of.
    pub const JUDGED: [Self; 3] = [Self::Underutilized, Self::Empty, Self::Drifted];

    /// The word of the NodePool API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Underutilized => "Underutilized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Unhealthy => "Unhealthy",
        }
    }

    /// Position in [`BudgetPool::activity`].
    pub fn index(self) -> usize {
        match self {
            Self::Underutilized => 0,
            Self::Empty => 1,
            Self::Drifted => 2,
            Self::Unhealthy => 3,
        }
    }
}

/// A set of [`BudgetReason`]: the WIT flags `reasons`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReasons {
    /// Whether consolidation is in the set.
    pub underutilized: bool,
    /// Whether emptiness is in the set.
    pub empty: bool,
    /// Whether drift is in the set.
    pub drifted: bool,
    /// Whether repair is in the set.
    pub unhealthy: bool,
}

impl BudgetReasons {
    /// The set of all reasons, that of a budget that names none.
    pub const ALL: Self = Self {
        underutilized: true,
        empty: true,
        drifted: true,
        unhealthy: true,
    };

    /// Whether the set holds the reason.
    pub fn contains(self, reason: BudgetReason) -> bool {
        match reason {
            BudgetReason::Underutilized => self.underutilized,
            BudgetReason::Empty => self.empty,
            BudgetReason::Drifted => self.drifted,
            BudgetReason::Unhealthy => self.unhealthy,
        }
    }
}

/// One declared budget of a pool, already resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredBudget {
    /// Nodes as the spec writes them: `10%` or `5`.
    pub nodes: String,
    /// Resolved against the node count; 0 when the budget is invalid, which closes the pool.
    pub resolved: u32,
    /// Whether its window is open.
    pub active: bool,
    /// Seconds until its window opens, or closes with no other open; 0 without a schedule and where windows follow each
    /// other without end.
    pub next_change_seconds: u32,
    /// The reasons it applies to.
    pub reasons: BudgetReasons,
}

/// Disruptions of a pool for one reason, under way and finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolActivity {
    /// Nodes being disrupted now.
    pub disrupting: u32,
    /// Disruptions finished in the last hour.
    pub recent_hour: u32,
    /// Disruptions finished in the last day.
    pub recent_day: u32,
    /// Replacements that did not come in the last day.
    pub failed_day: u32,
}

/// A pool as budget policies see it: the WIT record `pool` of the interface `budgets`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetPool {
    /// Name of the NodePool.
    pub name: String,
    /// Labels of the NodePool object.
    pub labels: Vec<(String, String)>,
    /// Initialized and rebooting nodes of the pool whose instances are not being ended; percentages are of these.
    pub total: u32,
    /// Those of them that are not Ready or reboot, and are not marked for deletion.
    pub not_ready: u32,
    /// Those of them that are marked for deletion, Ready or not.
    pub deleting: u32,
    /// Those of them that drifted.
    pub drifted: u32,
    /// Hash of the pool's template and its class: the definition that nodes made now would have.
    pub drift_target: String,
    /// Drifted nodes renewed since `drift_target` is what it is.
    pub renewed: u32,
    /// Seconds since it changed; [`NEVER_SECONDS`] when it was not seen to change.
    pub target_age_seconds: u32,
    /// USD an hour of all its nodes.
    pub price: f64,
    /// Disruptions for each reason, at the position [`BudgetReason::index`].
    pub activity: [PoolActivity; BudgetReason::ALL.len()],
    /// Pending pods of the cluster.
    pub pending_pods: u32,
    /// Declared budgets in the order of the spec.
    pub declared: Vec<DeclaredBudget>,
}

impl BudgetPool {
    /// The smallest active declared budget for the reason; `None` when none applies.
    pub fn declared_least(&self, reason: BudgetReason) -> Option<u32> {
        let budgets = self.declared.iter();
        let applying = budgets.filter(|it| it.active && it.reasons.contains(reason));
        applying.map(|it| it.resolved).min()
    }

    /// Nodes that the declared budgets allow for the reason; `u32::MAX` when none applies.
    pub fn declared_allowed(&self, reason: BudgetReason) -> u32 {
        self.declared_least(reason).unwrap_or(u32::MAX)
    }
}

/// How many nodes of one pool may be under disruption for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Allowance {
    /// Index into the pools of the call.
    pub pool: u32,
    /// Reason of the disruptions that are allowed.
    pub reason: BudgetReason,
    /// Nodes at once, those already under way included.
    pub allowed: u32,
    /// Explanation in words, for the record.
    pub why: String,
    /// Set by the host, never by a guest: the binding carries `mortise.dev/authority: replace`, so the
    /// declared budgets do not cap this allowance.
    pub replaces_declared: bool,
}

/// Answer of [`BudgetsHook::allow`]: how many nodes may be disrupted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllowAnswer {
    /// At most one per pool and reason; a missing pair falls back to the declared budgets.
    pub items: Vec<Allowance>,
    /// Ask again no later than this (0: at the next loop).
    pub valid_for_seconds: u32,
    /// The policies that took part.
    pub uses: Vec<PolicyUse>,
}
