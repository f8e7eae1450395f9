//! Behaviour of the solver, case by case, each answer verified by an independent checker.

mod checker;
mod cluster;
mod constraints;
mod determinism;
mod pools;
mod reasons;
mod topology;
