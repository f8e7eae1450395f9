//! What a summary says of policies, from the host's own figures.

use crate::demo::summary::{PolicyLine, SwapLine};

impl SwapLine {
    /// From the host's counters.
    pub(crate) fn of(swaps: policy::Swaps) -> Self {
        let policy::Swaps {
            accepted,
            refused,
            longest_wait,
        } = swaps;
        Self {
            accepted,
            refused,
            longest_wait_microseconds: longest_wait.as_secs_f64() * 1e6,
        }
    }
}

impl PolicyLine {
    /// From the host's statistics.
    pub(crate) fn of(statistics: policy::PolicyStatistics) -> Self {
        Self {
            kind: statistics.kind,
            name: statistics.name,
            digest: statistics.digest,
            calls: statistics.calls,
            failures: statistics.failures,
            microseconds_p50: statistics.microseconds_p50,
            microseconds_most: statistics.microseconds_most,
        }
    }
}
