//! `mortise policy diff`: what one policy decides differently from another.

use std::process::ExitCode;

use anyhow::bail;
use policy::{BindingState, Difference, ObjectKey, PolicyHost, RecordedLine};

use super::arguments::DiffArguments;
use super::records::RecordedFile;
use super::{exit_code, say, target, unhurried_host};

/// Differences told one by one.
const EXAMPLES_MAX: usize = 10;

/// Exits as `diff` does: 0 when both decide the same.
pub(super) fn run(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    let host = unhurried_host()?;
    let old = bind(&host, &arguments.old, "old", arguments)?;
    let new = bind(&host, &arguments.new, "new", arguments)?;
    let found = match &arguments.records {
        None => host.compare(&old, &new, arguments.rounds)?,
        Some(file) => {
            let mut lines = RecordedFile::read(file)?;
            let questions = lines.by_ref().filter_map(|line| match line {
                RecordedLine::Call(call) => Some(call.question),
                RecordedLine::Policy(_) => None,
            });
            let questions: Vec<_> = questions.collect();
            lines.end()?;
            host.compare_on(&old, &new, &questions)?
        }
    };
    if found.is_empty() {
        bail!("the two judge different things; compare policies of one kind");
    }
    let is_equal = found.iter().all(|it| it.different == 0);
    for difference in &found {
        describe(difference);
    }
    Ok(exit_code(is_equal))
}

fn bind(
    host: &PolicyHost,
    argument: &str,
    name: &str,
    arguments: &DiffArguments,
) -> anyhow::Result<ObjectKey> {
    let mut source = target::source(host, argument, arguments.kind.map(Into::into))?;
    name.clone_into(&mut source.name);
    let status = host.apply(&source);
    if status.state != BindingState::Ready {
        bail!(
            "{argument} is refused: {}: {}",
            status.reason,
            status.message
        );
    }
    Ok(source.key())
}

fn describe(difference: &Difference) {
    let Difference {
        kind,
        rounds,
        asked,
        different,
        usd_per_hour,
        examples,
    } = difference;
    say(&format!(
        "{}: {different} of {asked} answers differ in {rounds} rounds",
        kind.as_str()
    ));
    if *usd_per_hour != 0.0 {
        say(&format!(
            "  the first choices of the new one cost {usd_per_hour:+.4} USD/h more, all together"
        ));
    }
    for example in examples.iter().take(EXAMPLES_MAX) {
        say(&format!("  {example}"));
    }
    if examples.len() > EXAMPLES_MAX {
        say(&format!("  and {} more", examples.len() - EXAMPLES_MAX));
    }
}
