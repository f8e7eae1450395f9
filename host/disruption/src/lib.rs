//! Which nodes to take away, when, and why: candidates, methods, budgets, commands.
//!
//! Answers to Karpenter's `pkg/controllers/disruption`. Pure: the clock, the options and the limits are
//! arguments, and nothing here may talk to an API, to a cloud or to a policy engine. The judgement of
//! policies comes in through the traits of [`hooks::disruption`]; native checks always follow it.

mod appraisal;
pub mod budgets;
mod buffers;
pub mod candidate;
pub mod command;
mod consolidation;
mod decide;
mod decision;
pub mod deletion_cost;
pub mod drain;
mod drift;
mod emptiness;
pub mod end_state;
mod expiry;
mod findings;
pub mod history;
mod input;
mod memory;
pub mod method;
mod multi_node_consolidation;
mod node_finding;
mod obstacle;
mod preferred;
pub mod queue;
mod renewal;
pub mod repair;
mod round;
mod scan;
mod scene;
pub mod scored;
mod simulation;
mod single_node_consolidation;
pub mod static_drift;
pub mod surplus;
pub mod validation;

pub use command::{Command, CommandCandidate, Execution, RepairReason, TerminateFirst};
pub use decide::{decide, decide_watched};
pub use decision::Decision;
pub use input::{DisruptionInput, Gates, PolicyHooks, context};
pub use memory::Memory;
pub use method::Method;
