//! The hooks through which policies judge: questions and answers as plain columns, and the traits behind which a host
//! of policies stands.
//!
//! Both sides meet here, so that neither waits for the other to be built: `scheduling` and `disruption` fill the
//! columns and call the traits, `policy` implements them. Nothing here knows Kubernetes or how a policy is run.

pub mod disruption;
pub mod ranking;
