//! The hooks through which policies judge: questions and answers as plain columns, how policies are bound, and the
//! traits behind which a host of policies stands.
//!
//! Both sides meet here, so that neither waits for the other to be built: `scheduling` and `disruption` fill the
//! columns, `controllers` tells of bindings, and `policy` implements the traits. Nothing here knows objects of
//! Kubernetes or how a policy is run.

pub mod binding;
pub mod columns;
pub mod disruption;
pub mod policy_use;
pub mod ranking;
