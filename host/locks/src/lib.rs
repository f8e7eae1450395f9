//! Locks of values that are sound whenever they can be seen: who panicked while holding one has left nothing half done.
//!
//! A crate of its own, below all others, because pure crates take locks as the shells do. One thread drives the
//! controllers, so that no lock of theirs is waited for.

use std::sync::{
    LockResult, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// Locks a mutex, also after a panic elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Locks for reading, also after a panic elsewhere.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    unpoisoned(lock.read())
}

/// Locks for writing, also after a panic elsewhere.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    unpoisoned(lock.write())
}

/// What a lock or a condition variable answered, also after a panic elsewhere.
pub fn unpoisoned<T>(answer: LockResult<T>) -> T {
    answer.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_panic_elsewhere_keeps_nobody_out() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(1));
        thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _held = (lock(&mutex), write(&shared));
                panic!("while both are held");
            });
            assert!(holder.join().is_err());
        });
        assert!(mutex.is_poisoned() && shared.is_poisoned());
        *lock(&mutex) += 1;
        *write(&shared) += 1;
        assert_eq!((*lock(&mutex), *read(&shared)), (2, 2));
    }
}
