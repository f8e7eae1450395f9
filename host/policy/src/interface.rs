//! The interface of policies in the versions that this host takes, as one.
//!
//! A host takes components of the current minor version and of the one before it. What is asked and answered is the
//! same for both: each version's file writes the question in its own types and reads the answer back. WIT types do not
//! leave this folder, save for those of the log and of what a guest imports (`host`, `types`).

pub(crate) mod bindings;
mod bindings_0_1;
mod convert;
mod convert_0_1;
mod current;
pub(crate) mod exchange;
mod previous;

use hooks::disruption as native;
use hooks::policy_use::PolicyKind;
use wasmtime::component::{HasSelf, InstancePre, Linker};

use crate::call_context::CallContext;
use crate::guest::guest_state::GuestState;

use bindings::mortise::policy::{host, types};
use bindings_0_1::mortise::policy as policy_0_1;
use exchange::{
    ConfigIssue, Descriptor, GivenAllowances, GivenRanking, GuestResult, JudgeAsk, RankAsk,
    Remembering, RunningInstance,
};

type AddToLinker = fn(&mut Linker<GuestState>) -> wasmtime::Result<()>;

/// The interfaces that a policy may import, in both versions, and what gives them to it.
const GRANTED: [(&str, AddToLinker); 4] = [
    ("mortise:policy/types@0.2.", |linker| {
        types::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
    }),
    ("mortise:policy/host@0.2.", |linker| {
        host::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
    }),
    ("mortise:policy/types@0.1.", |linker| {
        policy_0_1::types::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
    }),
    ("mortise:policy/host@0.1.", |linker| {
        policy_0_1::host::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
    }),
];

/// Whether a policy may import an interface of this name.
pub(crate) fn is_granted(import: &str) -> bool {
    let mut granted = GRANTED.iter().map(|(prefix, _)| prefix);
    granted.any(|prefix| import.starts_with(prefix))
}

/// Gives a policy all that it may import.
pub(crate) fn add_to_linker(linker: &mut Linker<GuestState>) -> wasmtime::Result<()> {
    GRANTED.iter().try_for_each(|(_, add)| add(linker))
}

impl policy_0_1::types::Host for GuestState {}

impl policy_0_1::host::Host for GuestState {
    fn enabled(&mut self, level: policy_0_1::host::Level) -> bool {
        host::Host::enabled(self, convert_0_1::level(level))
    }

    fn log(&mut self, level: policy_0_1::host::Level, message: String) {
        host::Host::log(self, convert_0_1::level(level), message);
    }
}

/// Exports of a component, in the version it was built for.
pub(crate) enum Guest {
    Current(current::CurrentGuest),
    Previous(previous::PreviousGuest),
}

/// The same call in either version.
macro_rules! either {
    ($self:ident, $guest:ident => $call:expr) => {
        match $self {
            Self::Current($guest) => $call,
            Self::Previous($guest) => $call,
        }
    };
}

impl Guest {
    /// The exports of a component; `None` when it has no `lifecycle` of a version that is taken.
    pub(crate) fn new(pre: &InstancePre<GuestState>) -> Option<Self> {
        let current = current::CurrentGuest::new(pre).map(Self::Current);
        current.or_else(|| previous::PreviousGuest::new(pre).map(Self::Previous))
    }

    /// Whether it has what the kind needs.
    pub(crate) fn has(&self, kind: PolicyKind) -> bool {
        either!(self, guest => guest.has(kind))
    }

    pub(crate) fn describe(&self, at: RunningInstance<'_>) -> wasmtime::Result<Descriptor> {
        either!(self, guest => guest.describe(at))
    }

    pub(crate) fn validate(
        &self,
        at: RunningInstance<'_>,
        config: &str,
    ) -> wasmtime::Result<Result<Vec<ConfigIssue>, Vec<ConfigIssue>>> {
        either!(self, guest => guest.validate(at, config))
    }

    pub(crate) fn configure(
        &self,
        at: RunningInstance<'_>,
        config: &str,
    ) -> wasmtime::Result<Result<(), Vec<ConfigIssue>>> {
        either!(self, guest => guest.configure(at, config))
    }

    pub(crate) fn rank(
        &self,
        at: RunningInstance<'_>,
        call: &CallContext<'_>,
        ask: RankAsk<'_>,
    ) -> GuestResult<Remembering<Vec<GivenRanking>>> {
        either!(self, guest => guest.rank(at, call, ask))
    }

    pub(crate) fn order(
        &self,
        at: RunningInstance<'_>,
        call: &CallContext<'_>,
        round: &native::ConsolidationRound,
    ) -> GuestResult<Vec<f64>> {
        either!(self, guest => guest.order(at, call, round))
    }

    pub(crate) fn judge(
        &self,
        at: RunningInstance<'_>,
        call: &CallContext<'_>,
        ask: JudgeAsk<'_>,
    ) -> GuestResult<Remembering<Vec<native::Verdict>>> {
        either!(self, guest => guest.judge(at, call, ask))
    }

    pub(crate) fn allow(
        &self,
        at: RunningInstance<'_>,
        call: &CallContext<'_>,
        pools: &[native::BudgetPool],
    ) -> GuestResult<Remembering<GivenAllowances>> {
        either!(self, guest => guest.allow(at, call, pools))
    }
}
