//! From the problem to what a solve starts with.
//!
//! In goes the [`Problem`](crate::problem::Problem): pods, NodePools with their offerings, nodes. Out comes the
//! [`Solver`](super::Solver): equal pods in groups with their steps of relaxation, each pool's offerings as rows in
//! order of cost, nodes with what is free on them, topology with the running pods counted, and every requirement and
//! resource known by a number. The ranking policy is asked here, and nowhere after. Places no pod.

mod admission;
pub(super) mod bitset;
pub(super) mod counts;
mod daemons;
pub(super) mod nodes;
pub(super) mod pod_groups;
pub(super) mod pool_rows;
pub(super) mod pool_table;
pub(super) mod prepared;
mod rank_round;
mod setup;
pub(super) mod topology;
pub(super) mod unit_price;
pub(super) mod views;
pub(super) mod vocabulary;
pub(super) mod volumes;
