//! The policy host through its public door: what a ConfigMap brings about in the next decision.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agreement;
mod bad_modules;
mod bindings;
mod freshness;
mod guests;
#[path = "../../src/random.rs"]
mod random;
mod released;
mod rules;
mod scenarios;
mod shelf;
mod support;
