//! `mortise policy test`: the cases of a policy.

use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use anyhow::Context as _;
use policy::{CaseOutcome, Cases};

use super::arguments::TestArguments;
use super::{exit_code, say, target, unhurried_host};

pub(super) fn run(arguments: &TestArguments) -> anyhow::Result<ExitCode> {
    let host = unhurried_host()?;
    let source = target::source(&host, &arguments.policy, arguments.kind.map(Into::into))?;
    let files = if arguments.cases.is_empty() {
        vec![target::cases_beside(&arguments.policy)]
    } else {
        arguments.cases.clone()
    };
    let mut outcomes = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file)
            .with_context(|| format!("{}: name cases with --cases", file.display()))?;
        let cases = Cases::parse(&text).with_context(|| file.display().to_string())?;
        outcomes.extend(cases.run(&host, &source));
    }
    let failed = outcomes.iter().filter(|it| !it.faults.is_empty()).count();
    for outcome in &outcomes {
        say(&describe(outcome));
    }
    say(&format!(
        "{} of {} cases passed",
        outcomes.len() - failed,
        outcomes.len()
    ));
    Ok(exit_code(failed == 0))
}

fn describe(outcome: &CaseOutcome) -> String {
    let CaseOutcome { name, faults, log } = outcome;
    let mut text = String::new();
    let verdict = if faults.is_empty() {
        "ok    "
    } else {
        "FAILED"
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{verdict} {name}");
    for fault in faults {
        let _ = writeln!(text, "       {fault}");
    }
    if !faults.is_empty() {
        for line in log {
            let _ = writeln!(text, "       log {line}");
        }
    }
    text
}
