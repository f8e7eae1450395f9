//! Where something stands in a binding's expressions, and what is wrong there.

use std::fmt;

/// Faults that are told at once; a person mends these first.
const FAULTS_LISTED_MAX: usize = 10;

/// A line and column of a data key, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourcePosition {
    /// Key of the ConfigMap's data.
    pub(crate) key: &'static str,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl SourcePosition {
    /// The beginning of a line.
    pub(crate) fn line(key: &'static str, line: u32) -> Self {
        Self {
            key,
            line,
            column: 1,
        }
    }

    /// The place behind a text that begins here.
    pub(crate) fn after(self, text: &str) -> Self {
        text.chars().fold(self, |place, it| match it {
            '\n' => Self {
                line: place.line + 1,
                column: 1,
                ..place
            },
            _ => Self {
                column: place.column + 1,
                ..place
            },
        })
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, line, column } = self;
        write!(f, "data.{key}: line {line} column {column}")
    }
}

/// Something wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub(crate) struct RuleFault {
    pub(crate) at: SourcePosition,
    pub(crate) message: String,
}

impl RuleFault {
    pub(crate) fn new(at: SourcePosition, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// Why a rule is refused: everything that is wrong with it, in the order in which it stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    faults: Vec<String>,
}

impl RuleError {
    /// Of faults with and without a place.
    pub(super) fn new(general: Vec<String>, mut placed: Vec<RuleFault>) -> Self {
        // Tokens are read before expressions; a reader goes from top to bottom.
        placed.sort_by_key(|fault| fault.at);
        let placed = placed.into_iter().map(|fault| fault.to_string());
        Self {
            faults: general.into_iter().chain(placed).collect(),
        }
    }

    /// One text for each fault.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.faults.len().min(FAULTS_LISTED_MAX);
        f.write_str(&self.faults[..listed].join("; "))?;
        match self.faults.len() - listed {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for RuleError {}
