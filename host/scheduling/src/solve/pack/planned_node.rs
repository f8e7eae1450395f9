//! A node that a plan would open.
//!
//! Values only; nothing of it is opened or recorded yet.

/// How many pods of which items are on a node, and what they are worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Contents {
    pub(crate) picks: Vec<(usize, usize)>,
    pub(crate) worth: f64,
}

/// A node worth opening.
#[derive(Debug, Clone)]
pub(crate) struct PlannedNode {
    pub(crate) pool: usize,
    pub(crate) row: usize,
    pub(crate) contents: Contents,
    /// Cost for each dollar of worth.
    pub(crate) ratio: f64,
}

/// Pool, row and picks of a node: what makes two nodes of one pattern.
pub(crate) type PatternKey = (usize, usize, Vec<(usize, usize)>);

impl PlannedNode {
    pub(crate) fn pattern_key(&self) -> PatternKey {
        (self.pool, self.row, self.contents.picks.clone())
    }
}
