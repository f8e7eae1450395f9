//! Mortise on a cluster that is not ours: `KUBECONFIG=... cargo test -p tests --features cluster`.
//!
//! The instances are simulated and the Nodes fake: kwok, or whatever keeps Nodes with `kwok.x-k8s.io/node: fake`, plays
//! their kubelets. Only objects of the tests' own are touched. No other autoscaler of nodes may run there.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test cannot go on without it"
)]

mod disruption;
mod leaders;
mod life;
mod rig;
