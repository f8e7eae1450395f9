//! The part of a summary about policies, from the host's own figures.

use policy::PolicyHost;

use crate::demo::summary::{PolicyLine, SwapLine};

/// The policies that were asked, and how long they took.
pub(crate) fn policy_lines(host: &PolicyHost) -> Vec<PolicyLine> {
    let statistics = host.statistics().into_iter();
    statistics.map(PolicyLine::of).collect()
}

/// How often policies were swapped, and whether a round had to wait for it.
pub(crate) fn swap_line(host: &PolicyHost) -> SwapLine {
    SwapLine::of(host.swaps())
}

impl SwapLine {
    /// From the host's counters.
    fn of(swaps: policy::Swaps) -> Self {
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
    fn of(statistics: policy::PolicyStatistics) -> Self {
        Self {
            kind: statistics.kind.to_string(),
            name: statistics.name,
            digest: statistics.digest,
            calls: statistics.calls,
            failures: statistics.failures,
            microseconds_p50: statistics.microseconds_p50,
            microseconds_most: statistics.microseconds_most,
        }
    }
}
