//! A node that a plan would open.
//!
//! Values only; nothing of it is opened or recorded yet.

/// How many pods of which items are on a node, and what they are worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) picks: Vec<(usize, usize)>,
    pub(super) worth: f64,
}

/// A node worth opening.
#[derive(Debug, Clone)]
pub(super) struct PlannedNode {
    pub(super) pool: usize,
    pub(super) row: usize,
    pub(super) contents: Contents,
    /// Cost for each dollar of worth.
    pub(super) ratio: f64,
}

/// Pool, row and picks of a node: what makes two nodes of one pattern.
pub(super) type PatternKey = (usize, usize, Vec<(usize, usize)>);

impl PlannedNode {
    pub(super) fn pattern_key(&self) -> PatternKey {
        (self.pool, self.row, self.contents.picks.clone())
    }
}
