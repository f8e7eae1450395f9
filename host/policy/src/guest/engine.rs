//! The one wasmtime engine, and the thread that makes deadlines pass.
//!
//! Nothing here may change an answer; what guests compute with is set in `guest_config.rs`.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use locks::{lock, unpoisoned};
use wasmtime::{Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Result};

use crate::guest::guest_config::guest_config;
use crate::guest::guest_state::{CORE_INSTANCES_MAX, MEMORIES_MAX, TABLES_MAX};
use crate::guest::limits::Limits;

/// Instances alive at once; one round needs one at a time, so this bounds concurrent rounds.
const INSTANCES_MAX: u32 = 16;
/// Memory that a pooled instance keeps between rounds, where all of it must be wiped.
const KEEP_RESIDENT_BYTES: usize = 64 << 10;
/// Memory that a pooled instance keeps where the kernel tells which pages were written: a guest has its stack, its data
/// and its table of offerings in so much, and page faults are what costs most of a small call.
const KEEP_RESIDENT_BYTES_SCANNED: usize = 1 << 20;
const TICK: Duration = Duration::from_millis(1);

/// Engine that runs all components, with memory set aside for instances where the machine has it.
pub(crate) fn engine(limits: &Limits) -> Result<Engine> {
    let mut scanning = pooling(limits);
    scanning
        .pagemap_scan(Enabled::Yes)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES_SCANNED);
    let pooled = |pool| {
        Engine::new(guest_config().allocation_strategy(InstanceAllocationStrategy::Pooling(pool)))
    };
    // Scanning needs Linux 6.7. Pooling reserves address space up front, which some sandboxes refuse.
    pooled(scanning)
        .or_else(|_| pooled(pooling(limits)))
        .or_else(|_| Engine::new(&guest_config()))
}

/// Room for so many instances of the largest that is let in: no policy can take the room of another.
fn pooling(limits: &Limits) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(INSTANCES_MAX)
        .total_core_instances(INSTANCES_MAX * CORE_INSTANCES_MAX)
        .total_memories(INSTANCES_MAX * MEMORIES_MAX)
        .total_tables(INSTANCES_MAX * TABLES_MAX)
        .max_memory_size(limits.memory_bytes_max)
        .linear_memory_keep_resident(KEEP_RESIDENT_BYTES);
    pool
}

/// Ticks for a deadline: one more, because the first may come at once.
pub(crate) fn ticks(deadline: Duration) -> u64 {
    u64::try_from(deadline.as_millis()).map_or(u64::MAX / 2, |millis| millis + 1)
}

/// Advances the engine's epoch every millisecond while a call with a deadline runs; asleep otherwise.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<TickerShared>,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct TickerShared {
    state: Mutex<TickerState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct TickerState {
    calls: usize,
    stopped: bool,
}

impl Ticker {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::default(),
            thread: Mutex::new(None),
        }
    }

    /// Time passes for the engine until the guard is dropped.
    pub(crate) fn run(&self, engine: &Engine) -> Ticking {
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let (shared, engine) = (Arc::clone(&self.shared), engine.clone());
            *thread = thread::Builder::new()
                .name("policy-epoch".to_owned())
                .spawn(move || tick(&shared, &engine))
                .ok();
        }
        drop(thread);
        self.shared.lock().calls += 1;
        self.shared.wake.notify_one();
        Ticking {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.wake.notify_one();
        let thread = unpoisoned(self.thread.get_mut()).take();
        // A panic of the ticker has nothing to tell: its loop has no way to fail.
        drop(thread.map(thread::JoinHandle::join));
    }
}

/// Keeps the ticker going.
pub(crate) struct Ticking {
    shared: Arc<TickerShared>,
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.shared.lock().calls -= 1;
    }
}

impl TickerShared {
    fn lock(&self) -> std::sync::MutexGuard<'_, TickerState> {
        lock(&self.state)
    }
}

fn tick(shared: &TickerShared, engine: &Engine) {
    loop {
        let is_idle = |state: &mut TickerState| state.calls == 0 && !state.stopped;
        let state = unpoisoned(shared.wake.wait_while(shared.lock(), is_idle));
        if state.stopped {
            return;
        }
        drop(state);
        thread::sleep(TICK);
        engine.increment_epoch();
    }
}
