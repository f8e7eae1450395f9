//! How often a policy is swapped: at most once in ten seconds, and less often while somebody keeps at it.
//!
//! A change that comes too early waits, and what is swapped in then is what the binding says then. Who changes a
//! binding once in ten seconds is within his rights; when one change overtakes another that waits, the pauses grow.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

const PAUSE: SignedDuration = SignedDuration::from_secs(10);
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(5);

/// When a binding was swapped, and how long it rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SwapPace {
    swapped: Timestamp,
    pause: SignedDuration,
    /// Fingerprint of the binding that waits for the pause to end.
    waiting: Option<u64>,
    was_overtaken: bool,
}

impl SwapPace {
    /// After the first swap.
    pub(super) fn first(now: Timestamp) -> Self {
        Self {
            swapped: now,
            pause: PAUSE,
            waiting: None,
            was_overtaken: false,
        }
    }

    /// Notes a swap now to what has this fingerprint, or says how long it has to wait.
    pub(super) fn swap(&mut self, now: Timestamp, fingerprint: u64) -> Result<(), Duration> {
        let other = self.waiting.is_some_and(|it| it != fingerprint);
        self.was_overtaken |= other;
        let left = self.pause - now.duration_since(self.swapped);
        if left.is_positive() {
            self.waiting = Some(fingerprint);
            return Err(left.unsigned_abs());
        }
        self.pause = if self.was_overtaken {
            (self.pause * 2).min(PAUSE_MAX)
        } else {
            PAUSE
        };
        self.waiting = None;
        self.was_overtaken = false;
        self.swapped = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Swaps of a binding that changes every so many seconds for ten minutes.
    fn swaps(every_seconds: u32) -> Vec<u32> {
        let start = Timestamp::UNIX_EPOCH;
        let mut pace = SwapPace::first(start);
        let mut swaps = vec![0];
        for second in 1..600_u32 {
            let now = start + SignedDuration::from_secs(second.into());
            let said = second / every_seconds;
            // Asked again when the pause is over, as the queue does it.
            let is_due = second % every_seconds == 0 || pace.waiting.is_some();
            if is_due && pace.swap(now, said.into()).is_ok() {
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
    fn one_change_that_waits_does_no_harm() {
        let start = Timestamp::UNIX_EPOCH;
        let mut pace = SwapPace::first(start);
        for swap in 1..30_u32 {
            let end = start + SignedDuration::from_secs(i64::from(10 * swap));
            let early = pace.swap(end - SignedDuration::from_millis(3), swap.into());
            assert_eq!(early, Err(Duration::from_millis(3)));
            assert_eq!(pace.swap(end, swap.into()), Ok(()));
        }
    }

    #[test]
    fn what_keeps_changing_is_swapped_ever_less_often() {
        assert_eq!(swaps(1), [0, 10, 30, 70, 150, 310]);
    }

    #[test]
    fn a_hundred_changes_in_ten_seconds_are_two_swaps() {
        let start = Timestamp::UNIX_EPOCH;
        let mut pace = SwapPace::first(start);
        let swapped = (1..=100_u32)
            .filter(|tenth| {
                let now = start + SignedDuration::from_millis(i64::from(tenth * 100));
                pace.swap(now, u64::from(*tenth)).is_ok()
            })
            .count();
        assert_eq!(1 + swapped, 2);
    }
}
