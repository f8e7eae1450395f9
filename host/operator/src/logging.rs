//! Logs as JSON lines on standard output, as Karpenter writes them, or as text in a terminal.

use std::io::IsTerminal as _;

use anyhow::bail;
use tracing_subscriber::EnvFilter;

/// Starts the log at a level of Karpenter's: debug, info or error. `RUST_LOG` refines it.
pub(crate) fn start(level: &str) -> anyhow::Result<()> {
    let level = match level {
        "" | "info" => "info",
        "debug" => "debug",
        "error" => "error",
        other => bail!("--log-level {other}: choose debug, info or error"),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(format!("{level},hyper=warn,tower=warn,kube=warn,aws=warn"))
    });
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    if std::io::stdout().is_terminal() {
        builder.init();
    } else {
        builder.json().init();
    }
    Ok(())
}
