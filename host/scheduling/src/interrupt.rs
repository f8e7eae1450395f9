//! A deadline as a value: the shell trips it, the solver looks at it between steps and keeps what it has decided.
//!
//! Must not know the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that asks a computation to stop. Clones share the flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that nobody will trip.
    pub fn never() -> Self {
        Self::default()
    }

    /// Asks the computation to stop.
    pub fn trip(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the computation was asked to stop.
    pub fn is_tripped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
