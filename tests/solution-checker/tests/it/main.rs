//! The solver judged by the rules: random worlds, what must not change an answer, hostile input.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot build its world has failed"
)]

mod data_problems;
mod faults_are_found;
mod hostile;
mod mended_worlds;
mod mutated_files;
mod properties;
mod same_answer;
mod service;
mod world;
