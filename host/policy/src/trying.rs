//! Policies without a cluster: cases, rounds made up or recorded, and what one policy says beside another.
//!
//! What is tried here decides nothing; `golden` and `conformance` alone have a say in whether a policy is let in.

pub(crate) mod cases;
pub(crate) mod compare;
pub(crate) mod conformance;
pub(crate) mod golden;
pub(crate) mod laid_out;
pub(crate) mod replay;
