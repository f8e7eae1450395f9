//! The controllers against the simulated API server, in virtual time, with a small cloud of their own.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod cloud;
mod failures;
mod life_of_a_node;
mod policies;
mod world;
