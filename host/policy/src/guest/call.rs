//! One call of a guest: a fresh instance, limits, and a failure that says which limit it was.
//!
//! Whether an answer is any good is for `answer.rs` to say.

use std::time::{Duration, Instant};

use wasmtime::component::Instance;
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::guest::call_failure::CallFailure;
use crate::guest::called::{Called, Log};
use crate::guest::engine::{Ticker, ticks};
use crate::guest::guest_state::{GuestState, TABLE_ELEMENTS_MAX};
use crate::guest::limits::{CallLimits, Limits, TEXT_BYTES_MAX, short};
use crate::guest::module::{Module, Origin};
use crate::interface::Guest;
use crate::interface::exchange::{ConfigIssue, GuestRefusal, GuestResult, RunningInstance};

/// How many deadlines may pass on the clock for a guest that waits for the processor.
const CLOCK_FACTOR: u32 = 4;

/// Resources that a call may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant<'a> {
    pub(crate) ticker: &'a Ticker,
    pub(crate) limits: &'a Limits,
    pub(crate) call: CallLimits,
}

/// An instance within its store.
pub(crate) struct Session<'a> {
    store: Store<GuestState>,
    instance: Instance,
    module: &'a Module,
    grant: Grant<'a>,
}

impl<'a> Session<'a> {
    /// An instance with its limits set; the guest's own start code runs within them.
    fn start(module: &'a Module, grant: Grant<'a>) -> Result<Self, (CallFailure, u64)> {
        let engine = module.pre.component().engine();
        let mut store = Store::new(engine, GuestState::new(grant.limits.memory_bytes_max));
        store.limiter(|state| state);
        store.set_hostcall_fuel(grant.limits.answer_bytes_max);
        match module.origin {
            Origin::BuiltIn => store.set_epoch_deadline(u64::MAX / 2),
            Origin::Given => bind_by_time(&mut store, grant.call.deadline),
        }
        let not_started =
            |error: &wasmtime::Error| CallFailure::NotStarted(short(format!("{error:#}")));
        store
            .set_fuel(grant.call.fuel)
            .map_err(|error| (not_started(&error), 0))?;
        match module.pre.instantiate(&mut store) {
            Ok(instance) => Ok(Self {
                store,
                instance,
                module,
                grant,
            }),
            Err(error) => {
                let spent = spent(&store, grant.call);
                let failure = match failure(&store, grant, &error) {
                    CallFailure::Trapped(_) => not_started(&error),
                    known => known,
                };
                Err((failure, spent))
            }
        }
    }

    pub(crate) fn configure(&mut self, config: &str) -> Result<(), CallFailure> {
        let at = RunningInstance {
            store: &mut self.store,
            instance: &self.instance,
        };
        match self.module.guest.configure(at, config) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(issues)) => Err(CallFailure::Configuration(issues_text(&issues))),
            Err(error) => Err(failure(&self.store, self.grant, &error)),
        }
    }

    /// Linear memory that the guest holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.store.data().memory_bytes
    }

    pub(crate) fn ask<T>(
        &mut self,
        question: impl FnOnce(&Guest, RunningInstance<'_>) -> GuestResult<T>,
    ) -> Result<T, CallFailure> {
        let at = RunningInstance {
            store: &mut self.store,
            instance: &self.instance,
        };
        match question(&self.module.guest, at) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(GuestRefusal { message, transient })) => Err(CallFailure::Refused {
                message: short(message),
                transient,
            }),
            Err(error) => Err(failure(&self.store, self.grant, &error)),
        }
    }
}

/// Runs `work` in a fresh instance.
pub(crate) fn call<T>(
    module: &Module,
    grant: Grant<'_>,
    work: impl FnOnce(&mut Session<'_>) -> Result<T, CallFailure>,
) -> Called<T> {
    let started = Instant::now();
    let _ticking =
        (module.origin == Origin::Given).then(|| grant.ticker.run(module.pre.component().engine()));
    match Session::start(module, grant) {
        Ok(mut session) => {
            let result = work(&mut session);
            let fuel = spent(&session.store, grant.call);
            let log = log(session.store.data_mut());
            drop(session);
            Called {
                result,
                fuel,
                duration: started.elapsed(),
                log,
            }
        }
        Err((failure, fuel)) => Called {
            result: Err(failure),
            fuel,
            duration: started.elapsed(),
            log: Log::default(),
        },
    }
}

/// Ends a guest that is at work for longer than the deadline. It is looked at with every tick and each look counts as
/// one, so that time which the machine gave to others does not; the clock has the last word.
fn bind_by_time(store: &mut Store<GuestState>, deadline: Duration) {
    let mut left = ticks(deadline);
    let started = Instant::now();
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| {
        left = left.saturating_sub(1);
        let is_over = left == 0 || started.elapsed() >= deadline * CLOCK_FACTOR;
        Ok(if is_over {
            UpdateDeadline::Interrupt
        } else {
            UpdateDeadline::Continue(1)
        })
    });
}

/// What a guest says is wrong with its configuration, cut where it goes on for too long.
pub(crate) fn issues_text(issues: &[ConfigIssue]) -> String {
    let mut text = String::new();
    for ConfigIssue { path, message } in issues {
        for part in [if text.is_empty() { "" } else { "; " }, path] {
            text.push_str(head(part));
        }
        if !path.is_empty() {
            text.push(' ');
        }
        text.push_str(head(message));
        if text.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    if text.is_empty() {
        "no reason given".to_owned()
    } else {
        short(text)
    }
}

/// As much of a text as is kept.
fn head(text: &str) -> &str {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX);
    text.get(..end).unwrap_or_default()
}

fn spent(store: &Store<GuestState>, limits: CallLimits) -> u64 {
    limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0))
}

fn failure(store: &Store<GuestState>, grant: Grant<'_>, error: &wasmtime::Error) -> CallFailure {
    let cause = error.root_cause().to_string();
    let text = head(cause.strip_prefix("wasm trap: ").unwrap_or(&cause)).to_owned();
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => CallFailure::OutOfFuel(grant.call.fuel),
        Some(Trap::Interrupt) => CallFailure::Deadline(grant.call.deadline),
        // What a guest does with a refused page is its own matter; most abort.
        _ if store.data().memory_denied => {
            CallFailure::OutOfMemory(grant.limits.memory_bytes_max, text)
        }
        _ if store.data().table_denied => CallFailure::TableTooLarge(TABLE_ELEMENTS_MAX, text),
        _ => CallFailure::Trapped(text),
    }
}

fn log(state: &mut GuestState) -> Log {
    Log {
        lines: std::mem::take(&mut state.lines),
        dropped: state.lines_dropped,
    }
}
