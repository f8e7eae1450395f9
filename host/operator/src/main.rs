//! The `mortise` binary: a list of subcommands, each in its own file.

mod api_client;
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

/// What the verbs of policies need of a cluster.
const CLUSTER: authoring::ClusterAccess = authoring::ClusterAccess {
    policies: policies::bindings::list,
    recording: running_controller::recording,
};

fn main() -> ExitCode {
    let outcome = match MortiseCli::parse().subcommand {
        Subcommand::Demo(arguments) => demo::run(&arguments),
        Subcommand::Controller(arguments) => controller::run(*arguments),
        Subcommand::Why(arguments) => why::run(&arguments),
        Subcommand::Crds(arguments) => crds::run(&arguments),
        Subcommand::Iam(arguments) => iam::run(&arguments),
        Subcommand::Simulate(arguments) => Ok(simulate::run(&arguments)),
        Subcommand::Convert(arguments) => Ok(convert::run(&arguments)),
        Subcommand::Doctor(arguments) => Ok(doctor::run(&arguments)),
        Subcommand::Shadow(arguments) => Ok(shadow::run(&arguments)),
        Subcommand::Completions(arguments) => completions::run(&arguments),
        Subcommand::Man(arguments) => man::run(&arguments),
        Subcommand::Policy(arguments) => authoring::run(&arguments, Some(CLUSTER)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mortise: {error:#}");
            ExitCode::FAILURE
        }
    }
}
