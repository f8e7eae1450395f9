//! Tests through the public door: the binary, the API server, the component.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

mod admission;
mod architecture;
mod bad_policies;
mod bindings;
mod book;
mod chart;
mod chart_on_a_cluster;
mod circles;
mod convert;
mod converted;
mod currency;
mod dashboards;
mod demo;
mod doctor;
mod empty_root;
mod first_policy;
mod flags;
mod invariants;
mod kubectl;
mod layout;
mod names;
mod policy;
mod practice;
mod profiles;
mod replicas;
mod shadow;
mod shipped;
mod simulate;
mod swaps;
mod tidy;
