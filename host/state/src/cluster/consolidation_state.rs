//! Whether anything changed that consolidation depends on.
//!
//! Says that something did, never what. Answers to `ConsolidationState` in Karpenter's
//! `pkg/controllers/state/cluster.go`.

use jiff::{SignedDuration, Timestamp};

use crate::snapshot::Snapshot;

/// A consolidation that found nothing looks again after this long, even if nothing changed.
const CONSOLIDATION_STATE_MAX_AGE_SECONDS: i64 = 300;

/// Tells whether anything that matters to consolidation changed since an earlier look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ConsolidationState {
    /// Number of changes so far.
    pub sequence: u64,
    /// Moment of the latest change.
    pub changed_at: Timestamp,
}

impl Snapshot {
    /// Tells whether anything that matters to consolidation changed. Grows old by itself every five
    /// minutes, so that a method that found nothing looks again.
    pub fn consolidation_state(&self, now: Timestamp) -> ConsolidationState {
        let state = self.data.consolidation_state;
        let age = now.duration_since(state.changed_at).as_secs();
        let steps = age.div_euclid(CONSOLIDATION_STATE_MAX_AGE_SECONDS).max(0);
        let grown = SignedDuration::from_secs(steps * CONSOLIDATION_STATE_MAX_AGE_SECONDS);
        ConsolidationState {
            changed_at: state
                .changed_at
                .saturating_add(grown)
                .unwrap_or(state.changed_at),
            ..state
        }
    }
}
