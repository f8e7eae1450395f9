//! How much an expression may compute: the same on every machine, because it is counted and not measured.
//!
//! A step is about ten nanoseconds of work. A node of an expression takes one, and texts and lists as many as their
//! length asks for; so a rule that is slow is stopped by the count, and no clock decides.

use super::pattern::Patterns;

/// Steps for one offering, move or pool with a reason. Every row of a round may take so many.
pub(crate) const ROW_STEPS_MAX: u64 = 2000;
/// Texts and lists that may be made for one of them.
pub(crate) const ROW_BYTES_MAX: u64 = 64 << 10;
/// Bytes that a list takes for each of its items.
pub(super) const ITEM_BYTES: usize = 32;
/// Bytes that are looked at or made in a step.
const BYTES_A_STEP: usize = 8;

/// Allowance that an expression used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spent {
    /// The steps of the call.
    Call,
    /// The steps of the row.
    Row,
    /// The bytes of texts and lists made for the row.
    RowBytes,
}

impl Spent {
    /// Fault in words; a row is an offering, a move or a NodePool.
    pub(crate) fn describe(self, row: &str) -> String {
        match self {
            Self::Call => "out of steps".to_owned(),
            Self::Row => format!(
                "takes more than {ROW_STEPS_MAX} steps for one {row}; go through shorter lists and strings, read \
                 config.MAP[key] where you search, or write a module"
            ),
            Self::RowBytes => format!(
                "makes more than {ROW_BYTES_MAX} bytes of strings and lists for one {row}; make fewer, or write a \
                 module"
            ),
        }
    }
}

/// How much computing is left.
#[derive(Debug)]
pub(crate) struct Steps {
    granted: u64,
    left: u64,
    row_left: u64,
    row_bytes_left: u64,
    /// Patterns that were computed in this call.
    pub(super) patterns: Patterns,
}

impl Steps {
    pub(crate) fn new(granted: u64) -> Self {
        Self {
            granted,
            left: granted,
            row_left: ROW_STEPS_MAX,
            row_bytes_left: ROW_BYTES_MAX,
            patterns: Patterns::default(),
        }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.granted - self.left
    }

    /// The next row begins.
    pub(crate) fn begin_row(&mut self) {
        self.row_left = ROW_STEPS_MAX;
        self.row_bytes_left = ROW_BYTES_MAX;
    }

    pub(super) fn take(&mut self, steps: u64) -> Result<(), Spent> {
        self.row_left = self.row_left.checked_sub(steps).ok_or(Spent::Row)?;
        self.left = self.left.checked_sub(steps).ok_or(Spent::Call)?;
        Ok(())
    }

    /// For looking at so many bytes.
    pub(super) fn look(&mut self, bytes: usize) -> Result<(), Spent> {
        self.take(u64::try_from(bytes / BYTES_A_STEP).unwrap_or(u64::MAX))
    }

    /// Before so many bytes are made.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Spent> {
        self.look(bytes)?;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.row_bytes_left = self
            .row_bytes_left
            .checked_sub(bytes)
            .ok_or(Spent::RowBytes)?;
        Ok(())
    }
}
