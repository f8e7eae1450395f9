//! What a command answers, on standard output. A reader that has seen enough, as `head` has, is no fault.

use std::io::{BufWriter, ErrorKind, Result, Write, stdout};

use serde::Serialize;

use crate::cli::Output;

/// Prints an answer as JSON, or the text of it.
pub(crate) fn print(
    output: Output,
    answer: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    match output {
        Output::Json => print_text(&format!("{}\n", serde_json::to_string_pretty(answer)?)),
        Output::Text => print_text(&text()),
    }
}

/// Prints a text as it is.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let printed: Result<()> = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match printed {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}
