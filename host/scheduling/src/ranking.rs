//! Questions to the ranking hook: the columns of `hooks::ranking` made of instance types, pods and nodes.
//!
//! What is said of a launch and of nodes that run is here too. Who answers is none of its business.

mod appraisal;
mod exclusions;
mod launch;
mod premium;
mod table;
mod usage;
mod workloads;

pub use appraisal::{Appraisal, AppraisedPool};
pub use exclusions::Exclusions;
pub use hooks::policy_use::{PolicyKind, PolicyUse, UseOutcome};
pub use hooks::ranking::{
    ClaimOperator, ClaimRequirement, ClaimView, ExtraColumn, ExtraValues, InvalidPremium,
    ListPrices, NEVER_SECONDS, NO_SYMBOL, Needs, OfferingTable, PodsSummary, PremiumMax, PriceRank,
    RankAnswer, RankHook, RankRound, RankStage, Ranking, Symbols, UsageTable, WorkloadTable,
};
pub use launch::{AbovePremium, LaunchRanking, RankedLaunch, RankedOffering, rank_for_launch};
pub use premium::premium_of_node;
pub(crate) use premium::premium_of_pool;
pub use table::{TableRow, accelerators};
pub(crate) use table::{claim_requirements, offering_table};
pub(crate) use usage::usage_table;
pub use usage::{Usage, UsageKey};
pub use workloads::{FactsByOwner, WorkloadContext, WorkloadFacts, pods_summary, push_workloads};
