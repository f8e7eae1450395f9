//! Logs as JSON lines on standard output, as Karpenter writes them (`logging/karpenter.rs`), or as text in a terminal.
//!
//! The level can be changed while the process runs. Answers to `pkg/operator/logging/logging.go`.

mod karpenter;

use std::fs::OpenOptions;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt as _};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt};

use karpenter::KarpenterLine;

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

/// Starts the log at a level of Karpenter's, debug, info or error, into the paths of a comma list. `RUST_LOG` refines it.
pub(crate) fn start(level: &str, paths: &str) -> anyhow::Result<LogLevel> {
    let given = filter(level)?;
    let first = EnvFilter::try_from_default_env().unwrap_or(given);
    let (filter, handle) = reload::Layer::<EnvFilter, Registry>::new(first);
    let lines = if paths == "stdout" && std::io::stdout().is_terminal() {
        fmt::layer().boxed()
    } else {
        let layer = fmt::layer().event_format(KarpenterLine);
        let layer = layer.fmt_fields(JsonFields::new());
        layer.with_writer(writer(paths)?).boxed()
    };
    tracing_subscriber::registry()
        .with(filter)
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
