//! The server's one lock discipline: a poisoned lock is still a lock.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: the store is changed in whole steps, so it is never half-written.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
