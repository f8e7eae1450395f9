//! How Kubernetes writes times down.

use jiff::Timestamp;

/// Seconds since the epoch as Kubernetes prints times.
pub(crate) fn time_text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
