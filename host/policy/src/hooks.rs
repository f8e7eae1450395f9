//! The hook traits of scheduling and disruption, answered by the policies in charge, and the port by which those are
//! bound.
//!
//! None of the hooks fails: a policy without an answer is replaced by the built-in default in the same round,
//! and the default's component by the native code that it is compared with in tests.

mod binding;
mod budgets;
mod consolidation;
mod rank;

use hooks::ranking::PolicyUse;
pub(crate) use rank::{first_choice, rows};

/// Adds a use once: a chain may ask a policy several times in a round.
fn add_use(uses: &mut Vec<PolicyUse>, policy_use: PolicyUse) {
    if !uses.contains(&policy_use) {
        uses.push(policy_use);
    }
}
