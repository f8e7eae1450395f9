//! `mortise policy replay`: asks the calls of a recording again, and says where the answer is another one.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use policy::{RecordedLine, Replayed};

use super::arguments::ReplayArguments;
use super::{exit_code, patient_host, say, target};

/// Differences told one by one.
const DIFFERENCES_MAX: usize = 10;

pub(super) fn run(arguments: &ReplayArguments) -> anyhow::Result<ExitCode> {
    // The limits are those of the controller: a call that ran out of fuel then must do so now.
    let host = patient_host()?;
    let mut modules = Vec::new();
    for argument in &arguments.policies {
        for source in target::sources(&host, argument, None)? {
            modules.extend(target::unpacked(&source));
        }
    }
    let lines = read(&arguments.recording)?;
    let Replayed {
        equal,
        untimely,
        missing,
        different,
    } = host.replay(lines, &modules)?;
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

/// Lines of JSON in as many zstd frames as were written.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<RecordedLine>> {
    let open = fs::File::open(file).with_context(|| file.display().to_string())?;
    let reader = BufReader::new(zstd::stream::read::Decoder::new(open)?);
    let mut lines = Vec::new();
    for (number, line) in reader.lines().enumerate() {
        // A process that was killed leaves half a frame.
        let Ok(line) = line else { break };
        let read = serde_json::from_str(&line)
            .with_context(|| format!("{}, line {}", file.display(), number + 1))?;
        lines.push(read);
    }
    Ok(lines)
}
