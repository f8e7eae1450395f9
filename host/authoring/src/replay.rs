//! `mortise policy replay`: asks the calls of a recording again, and says where the answer is another one.

use std::process::ExitCode;

use policy::Replayed;

use super::arguments::ReplayArguments;
use super::records::RecordedFile;
use super::{exit_code, say, target, unhurried_host};

/// Differences told one by one.
const DIFFERENCES_MAX: usize = 10;

pub(super) fn run(arguments: &ReplayArguments) -> anyhow::Result<ExitCode> {
    // The limits are those of the controller: a call that ran out of fuel then must do so now.
    let host = unhurried_host()?;
    let mut modules = Vec::new();
    for argument in &arguments.policies {
        for source in target::sources(&host, argument, None)? {
            modules.extend(target::unpacked(&source));
        }
    }
    let mut lines = RecordedFile::read(&arguments.recording)?;
    let Replayed {
        equal,
        untimely,
        missing,
        different,
    } = host.replay(lines.by_ref(), &modules)?;
    lines.end()?;
    say(&format!(
        "{equal} calls gave the same bytes, {} gave others",
        different.len()
    ));
    if untimely > 0 {
        say(&format!(
            "{untimely} calls ran into their deadline then, which cannot be repeated"
        ));
    }
    for (digest, calls) in &missing {
        say(&format!(
            "{calls} calls of {digest} were left out; name its component with --policy"
        ));
    }
    for difference in different.iter().take(DIFFERENCES_MAX) {
        say(&format!("  {difference}"));
    }
    Ok(exit_code(different.is_empty() && missing.is_empty()))
}
