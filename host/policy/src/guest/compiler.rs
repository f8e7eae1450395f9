//! Compiling on threads of their own, in a bounded time.
//!
//! A compiler cannot be interrupted. One that takes too long is given up: whoever waits gets an answer, and
//! its thread counts as busy until it is done, so that modules made to be slow cannot pile up.

use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use locks::{lock, unpoisoned};
use wasmtime::component::Linker;

use crate::guest::guest_state::GuestState;
use crate::guest::module::{Module, Origin};
use crate::load_error::LoadError;

/// Components that are compiled at the same time.
const COMPILERS_MAX: usize = 2;

/// The threads that compile components from outside.
#[derive(Default)]
pub(crate) struct Compilers {
    shared: Arc<CompilerPermits>,
}

#[derive(Default)]
struct CompilerPermits {
    busy: Mutex<usize>,
    free: Condvar,
}

/// A compiler that is busy until this is dropped.
struct Busy(Arc<CompilerPermits>);

impl Drop for Busy {
    fn drop(&mut self) {
        *lock(&self.0.busy) -= 1;
        self.0.free.notify_one();
    }
}

impl Compilers {
    /// Compiles a component that nobody vouches for.
    pub(crate) fn compile(
        &self,
        linker: &Linker<GuestState>,
        bytes: &[u8],
        patience: Duration,
    ) -> Result<Module, LoadError> {
        let busy = self.take(patience).ok_or(LoadError::CompilersBusy)?;
        let (sender, receiver) = mpsc::channel();
        let (linker, bytes) = (linker.clone(), bytes.to_vec());
        thread::Builder::new()
            .name("policy-compiler".to_owned())
            .spawn(move || {
                let compiled = Module::compile(&linker, &bytes, Origin::Given);
                drop(busy);
                // Nobody may be waiting any more.
                drop(sender.send(compiled));
            })
            .map_err(|_| LoadError::CompilersBusy)?;
        receiver
            .recv_timeout(patience)
            .unwrap_or(Err(LoadError::CompileTimeout(patience)))
    }

    fn take(&self, patience: Duration) -> Option<Busy> {
        let CompilerPermits { busy, free } = &*self.shared;
        let locked = lock(busy);
        let waited = free.wait_timeout_while(locked, patience, |busy| *busy >= COMPILERS_MAX);
        let (mut busy, _) = unpoisoned(waited);
        if *busy >= COMPILERS_MAX {
            return None;
        }
        *busy += 1;
        Some(Busy(Arc::clone(&self.shared)))
    }
}
