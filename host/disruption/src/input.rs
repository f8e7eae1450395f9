//! Input of a disruption loop: the cluster, what may be bought, options, gates and policies.
//!
//! Complete when the loop begins, and lent for as long as it runs: whoever decides elsewhere takes the whole along.

use std::collections::BTreeSet;
use std::sync::Arc;

use hooks::disruption::{BudgetsHook, Civil, ConsolidationHook, Context};
use planning::provisioning::PoolTypes;
use scheduling::TableCache;
use scheduling::play::SchedulerProfile;
use scheduling::problem::Options;
use scheduling::ranking::RankHook;
use state::Snapshot;

use crate::budgets;
use crate::budgets::pools::Targets;
use crate::candidate::TypesByPool;
use crate::history::History;
use crate::memory::Memory;
use crate::repair::policies::RepairPolicies;

/// Everything that a loop looks at.
#[derive(Clone)]
pub struct DisruptionInput {
    /// The cluster as the loop sees it.
    pub snapshot: Snapshot,
    /// Instance types of every pool that has nodes, static and unready ones included.
    pub types: TypesByPool,
    /// Pools that may open nodes.
    pub pools: Vec<PoolTypes>,
    /// Claims that a command is about already.
    pub queued: BTreeSet<String>,
    /// Moves that finished or failed lately, and those under way.
    pub history: History,
    /// Knowledge that the last loop left.
    pub memory: Memory,
    /// Options of simulations; `now` is the present moment of the whole loop.
    pub options: Options,
    /// How the scheduler scores the nodes to which pods might go.
    pub scheduler: Arc<SchedulerProfile>,
    /// Moves that are switched on.
    pub gates: Gates,
    /// Policies that say which nodes are sick; `None` while repair is switched off.
    pub repair: Option<Arc<RepairPolicies>>,
    /// Tables of pools and their types that earlier rounds worked out.
    pub tables: Arc<TableCache>,
}

impl DisruptionInput {
    /// The part of the input that budgets are worked out of.
    pub fn budget_world<'a>(&'a self, targets: &'a Targets) -> budgets::BudgetWorld<'a> {
        budgets::BudgetWorld {
            snapshot: &self.snapshot,
            history: &self.history,
            types: &self.types,
            targets,
            now: self.options.now,
        }
    }
}

/// Policies that rank, judge and allow.
#[derive(Clone, Copy)]
pub struct PolicyHooks<'a> {
    /// Values offerings in simulations.
    pub rank: &'a dyn RankHook,
    /// Orders candidates and judges moves.
    pub consolidation: &'a dyn ConsolidationHook,
    /// Says how many nodes may be disrupted.
    pub budgets: &'a dyn BudgetsHook,
}

/// Moves that may be made beyond the ordinary ones, and those that may wait.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gates {
    /// Spot nodes may be replaced by cheaper spot nodes.
    pub spot_to_spot: bool,
    /// Nodes that drifted or are about to expire may go before their replacement comes where it could not come before.
    pub terminate_first_drift: bool,
    /// Sick nodes may go before their replacement comes where it could not come before.
    pub terminate_first_repair: bool,
    /// Moves that could go at once may be put off, such as those that save little of the bill. Karpenter's packing puts
    /// none off, nor do those who ask where the cluster ends up.
    pub puts_moves_off: bool,
}

/// Context that policies are told with every question of a decision.
pub fn context(options: &Options) -> Context {
    let now = options.now;
    Context {
        now_seconds: u64::try_from(now.as_second()).unwrap_or_default(),
        civil: vec![Civil::utc(now)],
        cluster: options.cluster.clone(),
        decision_id: options.decision_id.clone(),
        seed: options.seed,
    }
}
