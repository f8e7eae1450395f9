//! A node that a plan would open.

/// A filling: how many pods of which items, and what they are worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filling {
    pub(crate) picks: Vec<(usize, usize)>,
    pub(crate) worth: f64,
}

/// A node worth opening.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) pool: usize,
    pub(crate) row: usize,
    pub(crate) filling: Filling,
    /// Cost for each dollar of worth.
    pub(crate) ratio: f64,
}
