//! Notices when nothing happened in the world for long enough.

use sim::statistics::Pulse;
use std::time::Duration;

/// A world is settled when nothing was to be done for this long, in its own time. Longer than a round of
/// consolidation with its validation, so that a command still being weighed is waited for.
const QUIET: Duration = Duration::from_mins(1);

/// Notices when nothing happened for long enough.
#[derive(Default)]
pub(super) struct Quiet {
    pub(super) last: Option<Pulse>,
    since: Option<Duration>,
}

impl Quiet {
    pub(super) fn observe(&mut self, elapsed: Duration, is_busy: bool, pulse: Pulse) -> bool {
        if is_busy || self.last != Some(pulse) {
            self.last = Some(pulse);
            self.since = None;
            return false;
        }
        elapsed.saturating_sub(*self.since.get_or_insert(elapsed)) >= QUIET
    }
}
