//! One call of a guest: a fresh instance, limits, and a failure that says which limit it was.

use std::time::{Duration, Instant};

use tracing::{debug, error, info, warn};
use wasmtime::component::Instance;
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::engine::{Ticker, ticks};
use crate::interface::host::Level;
use crate::interface::{At, ConfigIssue, Guest, GuestResult, Refusal};
use crate::limits::{CallLimits, Limits, TEXT_BYTES_MAX, short};
use crate::linker::{LogLine, State, TABLE_ELEMENTS_MAX};
use crate::module::Module;

/// How many deadlines may pass on the clock for a guest that waits for the processor.
const CLOCK_FACTOR: u32 = 4;

/// Why a call has no answer. Each leaves the default deciding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// Spent all its fuel.
    #[error("ran out of fuel after {0} operations")]
    OutOfFuel(u64),
    /// Wanted more computing for one row than that may take.
    #[error("{0}")]
    TooCostly(String),
    /// Took too long.
    #[error("passed its deadline of {0:?}")]
    Deadline(Duration),
    /// Wanted more memory than it may have.
    #[error("wanted more than {0} bytes of memory: {1}")]
    OutOfMemory(usize, String),
    /// Wanted a larger table than it may have.
    #[error("wanted a table of more than {0} elements: {1}")]
    TableTooLarge(usize, String),
    /// Crashed.
    #[error("trapped: {0}")]
    Trapped(String),
    /// Said that it cannot answer.
    #[error("refused: {message}")]
    Refused {
        /// Its words.
        message: String,
        /// Whether the same question may be answered later.
        transient: bool,
    },
    /// Did not take its configuration.
    #[error("refused its configuration: {0}")]
    Configuration(String),
    /// Answered something that is no answer.
    #[error("gave an invalid answer: {0}")]
    InvalidAnswer(String),
    /// Could not be given an instance.
    #[error("could not be started: {0}")]
    NotStarted(String),
}

impl CallFailure {
    /// CamelCase word for records and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::OutOfFuel(_) | Self::TooCostly(_) => "OutOfFuel",
            Self::Deadline(_) => "DeadlineExceeded",
            Self::OutOfMemory(..) | Self::TableTooLarge(..) => "OutOfMemory",
            Self::Trapped(_) => "Trapped",
            Self::Refused { .. } => "Refused",
            Self::Configuration(_) => "InvalidConfig",
            Self::InvalidAnswer(_) => "InvalidAnswer",
            Self::NotStarted(_) => "NotStarted",
        }
    }
}

/// An answer or a failure, and what it took.
#[derive(Debug)]
pub(crate) struct Called<T> {
    pub(crate) result: Result<T, CallFailure>,
    pub(crate) fuel: u64,
    pub(crate) duration: Duration,
    pub(crate) log: Log,
}

impl<T> Called<T> {
    /// With a part of the answer.
    pub(crate) fn map<U>(self, part: impl FnOnce(T) -> U) -> Called<U> {
        let Self {
            result,
            fuel,
            duration,
            log,
        } = self;
        Called {
            result: result.map(part),
            fuel,
            duration,
            log,
        }
    }
}

/// What a guest logged, cut where it went on for too long.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) dropped: u32,
}

impl Log {
    /// The lines as a person reads them, with their levels.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self
            .lines
            .iter()
            .map(|LogLine { level, message }| {
                let level = match level {
                    Level::Debug => "debug",
                    Level::Info => "info",
                    Level::Warn => "warn",
                    Level::Error => "error",
                };
                format!("{level}: {message}")
            })
            .collect();
        texts.extend(self.dropped_text());
        texts
    }

    /// Hands the lines to the controller's own log.
    pub(crate) fn write(&self, policy: &str, decision: &str) {
        for LogLine { level, message } in &self.lines {
            match level {
                Level::Debug => debug!(target: "policy", policy, decision, "{message}"),
                Level::Info => info!(target: "policy", policy, decision, "{message}"),
                Level::Warn => warn!(target: "policy", policy, decision, "{message}"),
                Level::Error => error!(target: "policy", policy, decision, "{message}"),
            }
        }
        if let Some(text) = self.dropped_text() {
            warn!(target: "policy", policy, decision, "{text}");
        }
    }

    fn dropped_text(&self) -> Option<String> {
        (self.dropped > 0).then(|| format!("({} more lines dropped)", self.dropped))
    }
}

/// What a call may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant<'a> {
    pub(crate) ticker: &'a Ticker,
    pub(crate) limits: &'a Limits,
    pub(crate) call: CallLimits,
}

/// An instance within its store.
pub(crate) struct Session<'a> {
    store: Store<State>,
    instance: Instance,
    module: &'a Module,
    grant: Grant<'a>,
}

impl<'a> Session<'a> {
    /// An instance with its limits set; the guest's own start code runs within them.
    fn start(module: &'a Module, grant: Grant<'a>) -> Result<Self, (CallFailure, u64)> {
        let engine = module.pre.component().engine();
        let mut store = Store::new(engine, State::new(grant.limits.memory_bytes_max));
        store.limiter(|state| state);
        store.set_hostcall_fuel(grant.limits.answer_bytes_max);
        if module.is_trusted {
            store.set_epoch_deadline(u64::MAX / 2);
        } else {
            bind_by_time(&mut store, grant.call.deadline);
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
        let at = (&mut self.store, &self.instance);
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
        question: impl FnOnce(&Guest, At<'_>) -> GuestResult<T>,
    ) -> Result<T, CallFailure> {
        let at = (&mut self.store, &self.instance);
        match question(&self.module.guest, at) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Refusal { message, transient })) => Err(CallFailure::Refused {
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
    let _ticking = (!module.is_trusted).then(|| grant.ticker.run(module.pre.component().engine()));
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
fn bind_by_time(store: &mut Store<State>, deadline: Duration) {
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

fn spent(store: &Store<State>, limits: CallLimits) -> u64 {
    limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0))
}

fn failure(store: &Store<State>, grant: Grant<'_>, error: &wasmtime::Error) -> CallFailure {
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

fn log(state: &mut State) -> Log {
    Log {
        lines: std::mem::take(&mut state.lines),
        dropped: state.lines_dropped,
    }
}
