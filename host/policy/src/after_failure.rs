//! Who decides where a policy failed: worded here alone, for Events, logs and the status of a binding.
//!
//! Only says it: what is done stands in `hooks/`, and what puts a policy into quarantine in `registry.rs`.

use hooks::binding::OnFailure;
use hooks::policy_use::PolicyKind;

use crate::active_policy::ActivePolicy;

/// Who decides a round in which a policy failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterFailure {
    /// The built-in default of the kind.
    Default,
    /// Nobody, as its binding says to hold.
    Nobody,
    /// Whoever would have decided anyhow, as it only watches.
    Same,
    /// Native code, as it was the built-in default that failed.
    Native,
}

impl AfterFailure {
    /// Of a policy that was asked as this kind.
    pub(crate) fn of(policy: &ActivePolicy, kind: PolicyKind) -> Self {
        if policy.key.is_none() {
            return Self::Native;
        }
        if !policy.decides() {
            return Self::Same;
        }
        match (policy.on_failure, kind) {
            // A launch cannot be held back: pods wait for it.
            (OnFailure::Default, _) | (OnFailure::Hold, PolicyKind::Rank) => Self::Default,
            (OnFailure::Hold, PolicyKind::Consolidation | PolicyKind::Budgets) => Self::Nobody,
        }
    }

    /// What that comes to for a decision.
    pub(crate) fn told(self, decision_id: &str) -> String {
        match self {
            Self::Default => format!("the built-in default decided {decision_id}"),
            Self::Nobody => format!(
                "its binding says to hold, so that {decision_id} disrupts nothing of its NodePools"
            ),
            Self::Same => format!("it only watches, and {decision_id} is as it would have been"),
            Self::Native => format!("native code decided {decision_id}"),
        }
    }
}

/// Who decides while a policy is in quarantine: it is not asked, so that nothing is held back either.
pub(crate) fn in_quarantine(policy: &ActivePolicy) -> &'static str {
    if policy.decides() {
        "the built-in default decides"
    } else {
        "it does not watch"
    }
}
