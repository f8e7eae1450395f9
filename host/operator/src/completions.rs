//! `mortise completions`: what a shell needs to complete verbs and flags.

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::cli::{CompletionsArguments, MortiseCli};
use crate::output::print_text;

pub(crate) fn run(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut MortiseCli::command(),
        "mortise",
        &mut script,
    );
    print_text(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
