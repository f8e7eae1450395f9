//! The policy host through its public door: what a ConfigMap brings about in the next decision.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod agreement;
mod arrival;
mod bad_modules;
mod bindings;
mod costly_rules;
mod documents;
mod freshness;
mod guests;
mod mistakes;
mod places;
#[path = "../../src/random.rs"]
mod random;
mod recorded;
mod released;
mod rule_words;
mod rules;
mod scenarios;
mod settings;
mod shelf;
mod support;
mod told;
mod wishes;
