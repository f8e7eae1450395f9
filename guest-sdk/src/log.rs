//! The one thing a policy may do besides answering: write a line for the record.

use crate::bindings::mortise::policy::host;

pub use host::Level;

/// Writes a line. The text is built only when the host would keep it; natively it goes to stderr.
pub fn log(level: Level, message: impl FnOnce() -> String) {
    if cfg!(target_family = "wasm") {
        if host::enabled(level) {
            host::log(level, &message());
        }
    } else {
        eprintln!("{level:?}: {}", message());
    }
}
