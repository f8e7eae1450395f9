//! Behaviour of the solver, case by case, each answer verified by an independent checker.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot build its cluster has failed, and literals are passed as they come"
)]

mod checker;
mod cluster;
mod constraints;
mod deep;
mod determinism;
mod families;
mod launch;
mod pools;
mod reasons;
mod topology;
