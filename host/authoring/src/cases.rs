//! `mortise policy cases`: cases for `mortise policy test` from what a policy was asked in a cluster.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use super::records::RecordedFile;
use super::{say, unhurried_host};

#[derive(Debug, Args)]
pub(super) struct CasesArguments {
    /// The recording
    #[arg(long, value_name = "FILE")]
    from: PathBuf,

    /// Name of the binding whose answers are meant. Default: the only one that is no built-in default
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// How many of its answers, the latest ones
    #[arg(long, value_name = "N", default_value_t = 5)]
    last: usize,

    /// Where the cases go. Default: standard output
    #[arg(short = 'O', long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &CasesArguments) -> anyhow::Result<ExitCode> {
    let host = unhurried_host()?;
    let mut lines = RecordedFile::read(&arguments.from)?;
    let made = host.cases_of(lines.by_ref(), arguments.name.as_deref(), arguments.last);
    lines.end()?;
    let made = made?;
    for left_out in &made.left_out {
        eprintln!("left out: {left_out}");
    }
    if !made.is_tried {
        eprintln!(
            "the component of {} is in the recording by digest only: `mortise policy test` says whether the cases hold",
            made.name
        );
    }
    let head = format!(
        "# What {} was asked in a cluster, and what it answered; made by `mortise policy cases`.",
        made.name
    );
    let text = format!("{head}\n{}", made.text);
    match &arguments.out {
        None => say(&text),
        Some(file) if file.exists() => bail!("{} exists; name another file", file.display()),
        Some(file) => {
            fs::write(file, text).with_context(|| file.display().to_string())?;
            say(&format!("{} cases are in {}", made.cases, file.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
