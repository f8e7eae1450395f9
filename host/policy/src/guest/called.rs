//! Result of a call: the answer or the failure, what it took, and what the guest logged.

use std::time::Duration;

use tracing::{debug, error, info, warn};

use crate::guest::call_failure::CallFailure;
use crate::guest::guest_state::LogLine;
use crate::interface::bindings::mortise::policy::host::Level;

/// An answer or a failure, and what it took.
#[derive(Debug)]
pub(crate) struct Called<T> {
    pub(crate) result: Result<T, CallFailure>,
    pub(crate) fuel: u64,
    pub(crate) duration: Duration,
    pub(crate) log: Log,
}

impl<T> Called<T> {
    /// With a part of the answer.
    pub(crate) fn map<U>(self, part: impl FnOnce(T) -> U) -> Called<U> {
        let Self {
            result,
            fuel,
            duration,
            log,
        } = self;
        Called {
            result: result.map(part),
            fuel,
            duration,
            log,
        }
    }
}

/// Lines that a guest logged, cut where it went on for too long.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) dropped: u32,
}

impl Log {
    /// The lines as a person reads them, with their levels.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self
            .lines
            .iter()
            .map(|LogLine { level, message }| {
                let level = match level {
                    Level::Debug => "debug",
                    Level::Info => "info",
                    Level::Warn => "warn",
                    Level::Error => "error",
                };
                format!("{level}: {message}")
            })
            .collect();
        texts.extend(self.dropped_text());
        texts
    }

    /// Hands the lines to the controller's own log.
    pub(crate) fn write(&self, policy: &str, decision: &str) {
        for LogLine { level, message } in &self.lines {
            match level {
                Level::Debug => debug!(target: "policy", policy, decision, "{message}"),
                Level::Info => info!(target: "policy", policy, decision, "{message}"),
                Level::Warn => warn!(target: "policy", policy, decision, "{message}"),
                Level::Error => error!(target: "policy", policy, decision, "{message}"),
            }
        }
        if let Some(text) = self.dropped_text() {
            warn!(target: "policy", policy, decision, "{text}");
        }
    }

    fn dropped_text(&self) -> Option<String> {
        (self.dropped > 0).then(|| format!("({} more lines dropped)", self.dropped))
    }
}
