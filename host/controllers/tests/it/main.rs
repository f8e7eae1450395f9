//! The controllers against the simulated API server, in virtual time, with a small cloud of their own.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests may panic as tests do"
)]

mod claims_at_once;
mod clock_jumps;
mod cloud;
mod coming;
mod complaints;
mod crash_points;
mod drains;
mod ends_of_nodes;
mod events;
mod expiration;
mod failures;
mod first_lists;
mod foreign_objects;
mod hard_days;
mod interruption;
mod invariants;
mod invariants_broken;
mod launch_races;
mod life_of_a_node;
mod limits_and_budgets;
mod no_policies;
mod nominations;
mod observability;
mod overlays_and_buffers;
mod permissions;
mod policies;
mod process;
mod ranking;
mod rbac;
mod reboots;
mod region;
mod registration;
mod registration_health;
mod renewal;
mod reservations;
mod restarts;
mod state_metrics;
mod static_pools;
mod takeover;
mod world;
mod zonal_shifts;
