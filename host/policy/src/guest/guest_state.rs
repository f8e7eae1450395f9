//! State that the host keeps of one instance: the lines that it logged, with caps, and how much memory it has, up to a
//! limit.

use wasmtime::{ResourceLimiter, Result};

use crate::interface::bindings::mortise::policy::host::{self, Level};
use crate::interface::bindings::mortise::policy::types;

/// Lines kept of one call.
const LOG_LINES_MAX: usize = 64;
/// Bytes kept of one call.
const LOG_BYTES_MAX: usize = 16 << 10;
/// Elements of a table.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 20_000;
/// Memories of an instance, which share one limit: its own, and those that tools put beside it (a component of
/// JavaScript has three).
pub(crate) const MEMORIES_MAX: u32 = 4;
/// Core instances of an instance: the policy's own, and those that tools put around it.
pub(crate) const CORE_INSTANCES_MAX: u32 = 32;
/// Tables of an instance.
pub(crate) const TABLES_MAX: u32 = 8;

/// A line that a policy wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) level: Level,
    pub(crate) message: String,
}

/// The host's side of one instance.
#[derive(Debug)]
pub(crate) struct GuestState {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) lines_dropped: u32,
    bytes_logged: usize,
    memory_bytes_max: usize,
    /// Bytes that the memories have grown to, together.
    pub(crate) memory_bytes: usize,
    /// Set when the guest asked for more memory than it may have.
    pub(crate) memory_denied: bool,
    /// Set when it asked for a larger table than it may have.
    pub(crate) table_denied: bool,
}

impl GuestState {
    pub(crate) fn new(memory_bytes_max: usize) -> Self {
        Self {
            lines: Vec::new(),
            lines_dropped: 0,
            bytes_logged: 0,
            memory_bytes_max,
            memory_bytes: 0,
            memory_denied: false,
            table_denied: false,
        }
    }
}

impl types::Host for GuestState {}

impl host::Host for GuestState {
    fn enabled(&mut self, level: Level) -> bool {
        let enabled = match level {
            Level::Debug => tracing::enabled!(target: "policy", tracing::Level::DEBUG),
            Level::Info | Level::Warn | Level::Error => true,
        };
        enabled && self.lines.len() < LOG_LINES_MAX
    }

    fn log(&mut self, level: Level, message: String) {
        let bytes = self.bytes_logged.saturating_add(message.len());
        if self.lines.len() >= LOG_LINES_MAX || bytes > LOG_BYTES_MAX {
            self.lines_dropped = self.lines_dropped.saturating_add(1);
            return;
        }
        self.bytes_logged = bytes;
        self.lines.push(LogLine { level, message });
    }
}

impl ResourceLimiter for GuestState {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        let others = self.memory_bytes.saturating_sub(current);
        let together = others.saturating_add(desired);
        let granted = together <= self.memory_bytes_max;
        self.memory_denied |= !granted;
        if granted {
            self.memory_bytes = together;
        }
        Ok(granted)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool> {
        let granted = desired <= TABLE_ELEMENTS_MAX;
        self.table_denied |= !granted;
        Ok(granted)
    }

    fn instances(&self) -> usize {
        count(CORE_INSTANCES_MAX)
    }

    fn tables(&self) -> usize {
        count(TABLES_MAX)
    }

    fn memories(&self) -> usize {
        count(MEMORIES_MAX)
    }
}

fn count(most: u32) -> usize {
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
