//! The `mortise` binary: a list of subcommands, each in its own file.

mod api_client;
mod apply;
mod build_info;
mod cli;
mod clock;
mod cluster;
mod completions;
mod controller;
mod convert;
mod crds;
mod demo;
mod doctor;
mod exposition;
mod fence;
mod http;
mod iam;
mod leader_election;
#[cfg(test)]
mod logged_lines;
mod logging;
mod man;
mod options;
mod output;
mod policies;
mod process_facts;
mod process_metrics;
#[cfg(test)]
mod rbac;
mod running_controller;
#[cfg(test)]
mod settings_tables;
mod shadow;
mod simulate;
mod simulated_nodes;
mod stack;
mod token;
mod why;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{MortiseCli, Subcommand};

/// Decisions and JSON make and drop many small values; the system allocator spends a third of a run on that, and keeps
/// half as much again of what was dropped.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The exit code of a command that failed.
const FAILED: u8 = 1;
/// The exit code where a command could not look at what it was given, for those whose 1 says what they found.
const UNUSABLE: u8 = 2;

/// What the verbs of policies need of a cluster.
const CLUSTER: authoring::ClusterAccess = authoring::ClusterAccess {
    policies: policies::bindings::list,
    recording: running_controller::recording,
};

fn main() -> ExitCode {
    let (outcome, code_of_errors) = match MortiseCli::parse().subcommand {
        Subcommand::Demo(arguments) => (demo::run(&arguments), FAILED),
        Subcommand::Controller(arguments) => (controller::run(*arguments), FAILED),
        Subcommand::Why(arguments) => (why::run(&arguments), FAILED),
        Subcommand::Crds(arguments) => (crds::run(&arguments), FAILED),
        Subcommand::Iam(arguments) => (iam::run(&arguments), FAILED),
        Subcommand::Simulate(arguments) => (simulate::run(&arguments), UNUSABLE),
        Subcommand::Convert(arguments) => (convert::run(&arguments), UNUSABLE),
        Subcommand::Doctor(arguments) => (doctor::run(&arguments), UNUSABLE),
        Subcommand::Shadow(arguments) => (shadow::run(&arguments), UNUSABLE),
        Subcommand::Completions(arguments) => (completions::run(&arguments), FAILED),
        Subcommand::Man(arguments) => (man::run(&arguments), FAILED),
        Subcommand::Policy(arguments) => (authoring::run(&arguments, Some(CLUSTER)), FAILED),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("mortise: {error:#}");
        ExitCode::from(code_of_errors)
    })
}
