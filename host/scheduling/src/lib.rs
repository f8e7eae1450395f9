//! The pure scheduling core: requirements, resources, instance types, topology, the solver and the ranking hook.
//!
//! No clock, no environment, no randomness, no I/O, no hash-order iteration: the same [`problem::Problem`] gives the
//! same [`solution::Solution`], byte for byte. Answers to Karpenter's `pkg/scheduling` and
//! `pkg/controllers/provisioning/scheduling`.

pub mod device;
pub mod error;
mod existing_node;
pub mod instance_type;
pub mod interrupt;
mod market;
pub mod node_overlay;
pub mod play;
pub mod pod;
mod pod_selection;
pub mod problem;
pub mod ranking;
pub mod requirements;
pub mod solution;
pub mod solve;
pub mod taints;
mod template;

pub use interrupt::Interrupt;
pub use problem::{Problem, SPOT_TYPES_MIN};
pub use solution::Solution;
pub use solve::{
    Prepared, Sale, TableCache, lower_bound_per_hour, solve, solve_prepared, solve_within_premium,
    solve_without,
};
