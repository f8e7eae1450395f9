//! Logs as JSON lines on standard output, as Karpenter writes them (`logging/karpenter.rs`), or as text in a terminal.
//!
//! The level can be changed while the process runs. Answers to `pkg/operator/logging/logging.go`.

mod karpenter;
mod sampling;
mod span_fields;

use std::fs::OpenOptions;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail};
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt as _};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

use karpenter::KarpenterLine;
use sampling::Sampling;
use span_fields::SpanFields;

/// Changes the level of a log; clones change the same.
#[derive(Clone)]
pub(crate) struct LogLevel {
    set: Arc<dyn Fn(EnvFilter) -> bool + Send + Sync>,
}

impl LogLevel {
    /// Goes by another level of Karpenter's from now on; whether it is one.
    pub(crate) fn set(&self, level: &str) -> bool {
        filter(level).is_ok_and(|filter| (self.set)(filter))
    }
}

/// Starts the log at a level of Karpenter's, debug, info or error, into the paths of a comma list.
pub(crate) fn start(level: &str, paths: &str) -> anyhow::Result<LogLevel> {
    let directives = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let first = first_filter(level, &directives, is_flag_given(std::env::args()))?;
    let (filter, handle) = reload::Layer::<EnvFilter, Registry>::new(first);
    let lines = if paths == "stdout" && std::io::stdout().is_terminal() {
        fmt::layer().boxed()
    } else {
        let layer = fmt::layer().fmt_fields(SpanFields);
        let layer = layer.event_format(KarpenterLine);
        layer.with_writer(writer(paths)?).boxed()
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(Sampling::new())
        .with(lines)
        .init();
    Ok(LogLevel {
        set: Arc::new(move |filter| handle.reload(filter).is_ok()),
    })
}

/// What writes to all of the paths: `stdout`, `stderr`, or files, which grow.
fn writer(paths: &str) -> anyhow::Result<BoxMakeWriter> {
    let mut all: Option<BoxMakeWriter> = None;
    for path in paths.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let next = match path {
            "stdout" => BoxMakeWriter::new(std::io::stdout),
            "stderr" => BoxMakeWriter::new(std::io::stderr),
            file => {
                let opened = OpenOptions::new().create(true).append(true).open(file);
                let opened = opened
                    .with_context(|| format!("--log-output-paths {file} cannot be written"))?;
                BoxMakeWriter::new(Mutex::new(opened))
            }
        };
        all = Some(match all {
            Some(before) => BoxMakeWriter::new(before.and(next)),
            None => next,
        });
    }
    all.context("--log-output-paths names none: give stdout, stderr or files")
}

/// Why a log does not start at a level, if so.
pub(crate) fn refusal(level: &str) -> Option<String> {
    filter(level).err().map(|error| error.to_string())
}

/// What the log begins with: `RUST_LOG` is finer than the variable of the level, and a flag wins over every variable.
fn first_filter(level: &str, directives: &str, is_flag: bool) -> anyhow::Result<EnvFilter> {
    let given = filter(level)?;
    if is_flag || directives.is_empty() {
        return Ok(given);
    }
    Ok(EnvFilter::try_new(directives).unwrap_or(given))
}

/// Whether the level stands in the command line. Parsed flags do not tell it from one of the environment.
fn is_flag_given(arguments: impl IntoIterator<Item = String>) -> bool {
    let mut arguments = arguments.into_iter();
    arguments.any(|it| it == "--log-level" || it.starts_with("--log-level="))
}

/// What Karpenter calls errors is warned of here where it is tried again.
fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    let level = match level {
        "" | "info" => "info",
        "debug" => "debug",
        "error" => "warn",
        other => bail!("--log-level {other}: choose debug, info or error"),
    };
    let filter = format!("{level},hyper=warn,tower=warn,kube=warn,aws=warn");
    Ok(EnvFilter::new(filter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_karpenter() {
        for level in ["", "debug", "info", "error"] {
            assert!(filter(level).is_ok(), "{level}");
        }
        assert!(filter("trace").is_err());
    }

    #[test]
    fn a_flag_wins_over_rust_log_and_that_over_the_variable() {
        // Whether the level is a flag, RUST_LOG, and what the log goes by.
        let cases = [
            (false, "", "error"),
            (true, "", "error"),
            (false, "trace", "trace"),
            (true, "trace", "error"),
            (false, "a=loud", "error"),
        ];
        for (is_flag, directives, expected) in cases {
            let expected = match expected {
                "error" => filter("error").unwrap(),
                other => EnvFilter::new(other),
            };
            let first = first_filter("error", directives, is_flag).unwrap();
            assert_eq!(
                first.to_string(),
                expected.to_string(),
                "{is_flag} {directives}"
            );
        }
        let given = |line: &str| is_flag_given(line.split(' ').map(str::to_owned));
        assert!(given("mortise controller --log-level debug"));
        assert!(given("mortise controller --log-level=debug"));
        assert!(!given("mortise controller --log-output-paths stdout"));
    }

    #[test]
    fn lines_go_to_every_path() {
        use std::io::Write as _;
        use tracing_subscriber::fmt::MakeWriter as _;

        let file = std::env::temp_dir().join(format!("mortise-log-{}", std::process::id()));
        let paths = format!("stderr, {}", file.display());
        let writer = writer(&paths).unwrap();
        writeln!(writer.make_writer(), "a line of a test").unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            "a line of a test\n"
        );
        std::fs::remove_file(file).unwrap();
        let error = super::writer("/no/such/folder/x").err().unwrap();
        assert!(error.to_string().contains("/no/such/folder/x"), "{error}");
        assert!(super::writer(" , ").is_err());
    }
}
