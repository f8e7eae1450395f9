//! Limits on what a policy may use up. Fuel decides, since it is the same on every machine; the deadline is the
//! backstop for what fuel cannot see.

use std::time::Duration;

use hooks::policy_use::PolicyKind;

/// Limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Fuel of the call, roughly one unit for each operation of WebAssembly.
    pub fuel: u64,
    /// Time at work, in steps of a millisecond; four times as much on the clock, where a guest waits for the processor.
    /// Does not bind the components built into this binary: they are ours, and a slow machine must not change what is
    /// decided.
    pub deadline: Duration,
}

/// How much longer a call may take while a module is tried: nobody waits for it, and a busy machine must
/// not refuse a good one. Fuel decides.
const PATIENCE: u32 = 10;

impl CallLimits {
    /// The limits for a trial, with a longer deadline.
    pub(crate) fn extended(self) -> Self {
        Self {
            fuel: self.fuel,
            deadline: self.deadline * PATIENCE,
        }
    }

    /// The budget of a shadow: half.
    pub(crate) fn halved(self) -> Self {
        Self {
            fuel: self.fuel / 2,
            deadline: self.deadline / 2,
        }
    }
}

/// All limits of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of a rank call.
    pub rank: CallLimits,
    /// Of an order or judge call.
    pub consolidation: CallLimits,
    /// Of a budgets call.
    pub budgets: CallLimits,
    /// Of `describe`, `validate` and `configure` when a module is loaded.
    pub load: CallLimits,
    /// Wall time that compiling a component may take; off the decision path.
    pub compile: Duration,
    /// Size of an uncompressed component.
    pub component_bytes_max: usize,
    /// Size of one function of a component: compiling takes longer than in proportion to it.
    pub function_bytes_max: usize,
    /// Linear memory of an instance.
    pub memory_bytes_max: usize,
    /// Bytes that one answer may make the host allocate.
    pub answer_bytes_max: usize,
    /// Failures within the window that put a policy into quarantine.
    pub quarantine_failures: usize,
    /// The window, in the time of the rounds.
    pub quarantine_window_seconds: u64,
    /// Whether a policy of budgets may stand in for the declared ones, where its binding says so.
    pub may_replace_budgets: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let call = |millions: u64, millis| CallLimits {
            fuel: millions * 1_000_000,
            deadline: Duration::from_millis(millis),
        };
        Self {
            rank: call(200, 50),
            consolidation: call(400, 100),
            // A script needs some 200,000 operations a pool; it is asked once in a loop of ten seconds.
            budgets: call(100, 50),
            load: call(200, 1000),
            compile: Duration::from_secs(30),
            component_bytes_max: 16 << 20,
            function_bytes_max: 256 << 10,
            memory_bytes_max: 64 << 20,
            answer_bytes_max: 32 << 20,
            quarantine_failures: 3,
            quarantine_window_seconds: 300,
            may_replace_budgets: false,
        }
    }
}

impl Limits {
    pub(crate) fn of(&self, kind: PolicyKind) -> CallLimits {
        match kind {
            PolicyKind::Rank => self.rank,
            PolicyKind::Consolidation => self.consolidation,
            PolicyKind::Budgets => self.budgets,
        }
    }
}

/// Longest text of a guest or a rule that is kept: names, reasons, notes, explanations. They go into events.
pub(crate) const TEXT_BYTES_MAX: usize = 1024;

/// A text that somebody else wrote, cut where it is too long to be kept.
pub(crate) fn short(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        // What was cut off is not kept either.
        text.shrink_to_fit();
    }
    text
}
