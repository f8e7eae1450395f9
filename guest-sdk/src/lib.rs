//! Write Mortise policies in Rust.
//!
//! A policy is a type that implements [`Policy`] and one hook trait or more ([`RankPolicy`],
//! [`ConsolidationPolicy`], [`BudgetPolicy`]); [`export_policy!`] turns it into a component. This whole
//! policy wants Graviton unless it is a fifth dearer:
//!
//! ```
//! use guest_sdk::{Offering, Policy, RankPolicy, RankRound, Settings};
//!
//! struct PreferArm64 {
//!     discount: f64,
//! }
//!
//! impl Policy for PreferArm64 {
//!     const NAME: &'static str = "prefer-arm64";
//!     const SUMMARY: &'static str = "arm64 unless it is dearer by more than the discount";
//!     fn configure(settings: &mut Settings) -> Self {
//!         Self { discount: settings.number("discount", 0.2, 0.0..=1.0) }
//!     }
//! }
//!
//! impl RankPolicy for PreferArm64 {
//!     fn cost(&self, offering: &Offering<'_>, _round: &RankRound<'_>) -> f64 {
//!         match offering.arch() {
//!             "arm64" => offering.prior() * (1.0 - self.discount),
//!             _ => offering.prior(),
//!         }
//!     }
//! }
//!
//! guest_sdk::export_policy!(rank: PreferArm64);
//!
//! // Unit tests run natively, without Wasm.
//! use guest_sdk::testing::{Harness, OfferingRow};
//! let policy = Harness::<PreferArm64>::new(r#"{"discount": 0.25}"#).unwrap();
//! let table = [
//!     OfferingRow { instance_type: "m7i.large", price: 0.080, ..OfferingRow::default() },
//!     OfferingRow { instance_type: "m7g.large", arch: "arm64", price: 0.100, ..OfferingRow::default() },
//! ];
//! assert_eq!(policy.cheapest(&table), "m7g.large");
//! ```
//!
//! The crate must stay free of clocks, randomness and I/O: the host grants a policy nothing but a log.

#[cfg(target_arch = "wasm32")]
mod allocator;
#[doc(hidden)]
pub mod bindings;
mod budgets;
mod config;
mod consolidation;
mod export;
mod log;
mod policy;
mod rank;
mod symbols;
pub mod testing;
mod usage;
mod workloads;

pub use budgets::{
    Activity, Allowance, Allowances, Allowed, BudgetPolicy, DeclaredBudget, Pool, Reason, Reasons,
};
pub use config::{Json, Settings, decimal, fixed};
pub use consolidation::{
    ConsolidationCall, ConsolidationPolicy, ConsolidationPool, Decision, Move, MoveKind, Node,
    Nodes, PoolPart, PoolView, ProposedMove, Verdict, Verdicts,
};
pub use log::{Level, log};
pub use policy::{
    Civil, Column, ConfigIssue, Context, ExtraColumn, Field, NEVER, NO_SYM, Need, Policy,
    PolicyError, Scalar,
};
pub use rank::{
    CapacityType, Claim, Offering, Offerings, Operator, PodsSummary, RankCall, RankPolicy,
    RankRound, Ranking, Rankings, Requirement, Stage,
};
pub use usage::{Usage, UsageRow, UsageView};
pub use workloads::{Workload, Workloads, WorkloadsView};

#[doc(hidden)]
pub mod __private {
    pub use crate::bindings as types;
    pub use crate::bindings::worlds;
    pub use crate::export::Exported;
}
