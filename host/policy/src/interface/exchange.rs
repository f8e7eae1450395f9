//! Questions to a guest and its answers, in the words of neither version; nothing of it is checked yet.

use hooks::disruption::{self as native, ConsolidationRound, Move};
use hooks::ranking::{ClaimView, RankRound};
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::guest::guest_state::GuestState;

/// A running instance.
pub(crate) struct RunningInstance<'a> {
    pub(crate) store: &'a mut Store<GuestState>,
    pub(crate) instance: &'a Instance,
}

/// Result of a guest call: wasmtime's error, the policy's, or the value.
pub(crate) type GuestResult<T> = wasmtime::Result<Result<T, GuestRefusal>>;

/// The policy says that it cannot answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestRefusal {
    pub(crate) message: String,
    pub(crate) transient: bool,
}

/// Something about a configuration that its author should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigIssue {
    pub(crate) path: String,
    pub(crate) message: String,
}

/// Who a policy says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Name of the policy.
    pub name: String,
    pub version: String,
    /// Purpose of the policy, in one line.
    pub summary: String,
    /// JSON Schema of its configuration, or empty.
    pub config_schema: String,
    /// Whether it promises equal answers to equal questions.
    pub deterministic: bool,
    /// Facts beside the plain tables that it needs, by their words.
    pub needs: Vec<String>,
    /// Name and version of the SDK it was built with; empty when it does not say.
    pub sdk: String,
}

/// Arguments of `rank`.
#[derive(Clone, Copy)]
pub(crate) struct RankAsk<'a> {
    pub(crate) round: &'a RankRound,
    /// Those of the round that are asked about.
    pub(crate) claims: &'a [&'a ClaimView],
    /// Where the chain has come to.
    pub(crate) prior: &'a [f64],
}

impl<'a> RankAsk<'a> {
    /// The start of a chain: from the costs that the table has.
    pub(crate) fn of(round: &'a RankRound, claims: &'a [&'a ClaimView]) -> Self {
        Self {
            round,
            claims,
            prior: &round.table.prior,
        }
    }
}

/// Arguments of `judge`.
#[derive(Clone, Copy)]
pub(crate) struct JudgeAsk<'a> {
    pub(crate) round: &'a ConsolidationRound,
    pub(crate) moves: &'a [Move],
}

/// An answer, and what the policy wants to be told the next time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Remembering<T> {
    pub(crate) answer: T,
    pub(crate) memory: Option<Vec<u8>>,
}

/// A ranking as it comes: not checked.
#[derive(Debug)]
pub(crate) struct GivenRanking {
    pub(crate) scores: Vec<f64>,
    pub(crate) excluded: Vec<u32>,
    pub(crate) excluded_reason: Vec<u32>,
    pub(crate) reasons: Vec<String>,
    pub(crate) note: Option<String>,
}

/// Allowances as they come: not checked.
#[derive(Debug)]
pub(crate) struct GivenAllowances {
    pub(crate) items: Vec<native::Allowance>,
    pub(crate) valid_for_seconds: u32,
}

/// A guest is asked for what it does not export.
pub(super) fn missing(interface: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("the component has no {interface} interface"))
}
