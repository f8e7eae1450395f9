//! How Kubernetes writes times down.
//!
//! Never reads a clock.

use jiff::Timestamp;

/// A moment as Kubernetes prints it: whole seconds of UTC.
pub fn time_text(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
