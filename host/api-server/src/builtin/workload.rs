//! Workloads and the smaller kinds: their defaults, the rules that matter, and what an update may not change.

pub(crate) mod defaults;
pub(super) mod immutable;
mod template;
pub(super) mod validation;
