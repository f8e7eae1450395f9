//! The program `mortise-policy`: the verbs of `mortise policy` alone, built in a fraction of the time.

use std::process::ExitCode;

use authoring::PolicyArguments;
use clap::Parser;

/// Write policies for Mortise, try them and put them in charge
#[derive(Debug, Parser)]
#[command(name = "mortise-policy", version, propagate_version = true)]
struct PolicyCli {
    #[command(flatten)]
    arguments: PolicyArguments,
}

fn main() -> ExitCode {
    match authoring::run(&PolicyCli::parse().arguments, None) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mortise-policy: {error:#}");
            ExitCode::FAILURE
        }
    }
}
