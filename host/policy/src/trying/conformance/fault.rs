//! A made-up round that a policy has no answer to.

use hooks::policy_use::PolicyKind;

use crate::guest::call_failure::CallFailure;

/// A made-up round that a policy has no answer to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} round {round} of {rows} rows: {fault}", kind.as_str())]
pub struct NotConformant {
    /// Kind of policy that was asked.
    pub kind: PolicyKind,
    /// Number of the round.
    pub round: u32,
    /// Rows of its table.
    pub rows: u32,
    /// Fault that was found.
    pub fault: ConformanceFault,
}

/// Faults that may come to light in a made-up round.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConformanceFault {
    /// The policy gave no answer.
    #[error(transparent)]
    Failed(#[from] CallFailure),
    /// Two answers to one question.
    #[error("a second instance gave another answer; the decision's id is not an input")]
    NotDeterministic,
    /// The policy buys the dearest offering.
    #[error(
        "the dearer an offering, the less it costs by this policy, wherever its price matters; let the cost grow with \
         the price, and keep offerings out by excluding them"
    )]
    PrefersCostlier,
}
