//! How often a policy is swapped: at most once in ten seconds, and less often while somebody keeps at it.
//!
//! A change that comes too early waits, and what is swapped in then is what the binding says then.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const PAUSE: SignedDuration = SignedDuration::from_secs(10);
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(5);

/// When a binding was swapped, and how long it rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SwapPace {
    swapped: Timestamp,
    pause: SignedDuration,
    has_waited: bool,
}

impl SwapPace {
    /// After the first swap.
    pub(super) fn first(now: Timestamp) -> Self {
        Self {
            swapped: now,
            pause: PAUSE,
            has_waited: false,
        }
    }

    /// Notes a swap now, or says how long to wait. After a change that had to wait the pause doubles.
    pub(super) fn swap(&mut self, now: Timestamp) -> Result<(), Duration> {
        let left = self.pause - now.duration_since(self.swapped);
        if left.is_positive() {
            self.has_waited = true;
            return Err(left.unsigned_abs());
        }
        self.pause = if self.has_waited {
            (self.pause * 2).min(PAUSE_MAX)
        } else {
            PAUSE
        };
        self.has_waited = false;
        self.swapped = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Swaps of a binding that changes every so many seconds for ten minutes.
    fn swaps(every_seconds: i64) -> Vec<i64> {
        let start = Timestamp::UNIX_EPOCH;
        let mut pace = SwapPace::first(start);
        let mut swaps = vec![0];
        for second in 1..600 {
            let now = start + SignedDuration::from_secs(second);
            // Asked again when the pause is over, as the queue does it.
            let is_due = second % every_seconds == 0 || pace.has_waited;
            if is_due && pace.swap(now).is_ok() {
                swaps.push(second);
            }
        }
        swaps
    }

    #[test]
    fn a_change_now_and_then_takes_effect_at_once() {
        assert_eq!(swaps(120), [0, 120, 240, 360, 480]);
        assert_eq!(swaps(10).len(), 60);
    }

    #[test]
    fn what_keeps_changing_is_swapped_ever_less_often() {
        assert_eq!(swaps(1), [0, 10, 30, 70, 150, 310]);
    }

    #[test]
    fn a_hundred_changes_in_ten_seconds_are_two_swaps() {
        let start = Timestamp::UNIX_EPOCH;
        let mut pace = SwapPace::first(start);
        let tenths = (1..=100).map(|tenth| start + SignedDuration::from_millis(tenth * 100));
        let swapped = tenths.filter(|now| pace.swap(*now).is_ok()).count();
        assert_eq!(1 + swapped, 2);
    }
}
