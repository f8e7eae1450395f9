//! Logs as JSON lines on standard output, as Karpenter writes them (`logging/karpenter.rs`), or as text in a terminal.
//!
//! The level can be changed while the process runs. Answers to `pkg/operator/logging/logging.go`.

mod karpenter;

use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::bail;
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

/// Starts the log at a level of Karpenter's: debug, info or error. `RUST_LOG` refines it.
pub(crate) fn start(level: &str) -> anyhow::Result<LogLevel> {
    let given = filter(level)?;
    let first = EnvFilter::try_from_default_env().unwrap_or(given);
    let (filter, handle) = reload::Layer::<EnvFilter, Registry>::new(first);
    let lines = if std::io::stdout().is_terminal() {
        fmt::layer().boxed()
    } else {
        fmt::layer().event_format(KarpenterLine).boxed()
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    Ok(LogLevel {
        set: Arc::new(move |filter| handle.reload(filter).is_ok()),
    })
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
}
