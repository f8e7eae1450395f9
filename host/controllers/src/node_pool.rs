//! The controllers of NodePools: they keep the status true and the hash stamped.
//!
//! Answers to `pkg/controllers/nodepool`.

pub(crate) mod counter;
pub(crate) mod hash;
pub(crate) mod instance_types;
pub(crate) mod readiness;
pub(crate) mod registration_health;
pub(crate) mod validation;
