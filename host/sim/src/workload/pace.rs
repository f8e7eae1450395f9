//! How fast ReplicaSets come to their pods.
//!
//! Reads no clock: the moment is an argument.

use jiff::Timestamp;

/// How many pods ReplicaSets may create, as client-side limits of their controller have it: so many a second, none
/// saved up.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    per_second: u32,
    counted_to: Timestamp,
    /// Pods that may be created now, in thousandths.
    saved: u64,
}

impl Pace {
    pub(crate) fn new(per_second: u32, now: Timestamp) -> Self {
        Self {
            per_second,
            counted_to: now,
            saved: 0,
        }
    }

    pub(super) fn take(&mut self, wanted: usize, now: Timestamp) -> usize {
        let rate = u64::from(self.per_second);
        let millis = now.duration_since(self.counted_to).as_millis();
        let burst = rate.div_ceil(5).max(1) * 1000;
        let earned = rate.saturating_mul(u64::try_from(millis).unwrap_or_default());
        self.saved = self.saved.saturating_add(earned).min(burst);
        self.counted_to = now;
        let may = usize::try_from(self.saved / 1000).unwrap_or(usize::MAX);
        let taken = wanted.min(may);
        self.saved -= u64::try_from(taken).unwrap_or_default() * 1000;
        taken
    }
}
