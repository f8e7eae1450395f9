//! A node that a plan would open.
//!
//! Values only; nothing of it is opened or recorded yet.

use crate::solve::input::pool_table::{PoolId, RowId};

/// So many pods of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ItemCount {
    pub(super) item: usize,
    pub(super) count: usize,
}

/// How many pods of which items are on a node, and what they are worth.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) picks: Vec<ItemCount>,
    pub(super) worth: f64,
}

/// A node worth opening.
#[derive(Debug, Clone)]
pub(super) struct PlannedNode {
    pub(super) pool: PoolId,
    pub(super) row: usize,
    pub(super) contents: Contents,
    /// Cost for each dollar of worth.
    pub(super) ratio: f64,
}

/// What makes two nodes of one pattern.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PatternKey {
    row: RowId,
    picks: Vec<ItemCount>,
}

impl PlannedNode {
    pub(super) fn row_id(&self) -> RowId {
        RowId {
            pool: self.pool,
            row: self.row,
        }
    }

    pub(super) fn pattern_key(&self) -> PatternKey {
        PatternKey {
            row: self.row_id(),
            picks: self.contents.picks.clone(),
        }
    }
}
