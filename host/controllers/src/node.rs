//! The controllers of Nodes: their way out, and labels that older nodes lack.
//!
//! Answers to `pkg/controllers/node`.

pub(crate) mod entries;
pub(crate) mod eviction;
pub(crate) mod health;
pub(crate) mod hydration;
pub(crate) mod taints;
pub(crate) mod termination;
