//! The one lock of all who make or delete claims of NodePools with replicas.
//!
//! Held from the count to the last write, so that two never count on the same room. Answers to `ReserveNodeCount` in
//! `pkg/controllers/state/statenodepool.go`.

use std::collections::BTreeSet;

use tokio::sync::{Mutex, MutexGuard};

/// Claims of static pools that a disruption command is about.
#[derive(Debug, Default)]
pub(crate) struct StaticPending(Mutex<BTreeSet<String>>);

impl StaticPending {
    /// Nobody else makes or deletes claims of static pools while it is held.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().await
    }
}
