//! That a policy was asked, and how it went: what answers and records say of it.
//!
//! Both words go into records, and a record must read the same for ever, so their texts are the wire form.

use std::fmt::{Display, Formatter};

use serde::{Deserialize, Serialize};

/// A kind of policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PolicyKind {
    /// Ranks offerings.
    Rank,
    /// Orders candidates and judges moves.
    Consolidation,
    /// Says how many nodes may be disrupted.
    Budgets,
}

/// How a call of a policy went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum UseOutcome {
    /// The policy answered.
    Ok,
    /// It did not, and who comes after it stood in: the kind of failure, a colon, and what exactly.
    Fallback(String),
}

/// A policy that was asked, and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyUse {
    /// Kind of policy that it was asked as.
    pub kind: PolicyKind,
    /// Name of the binding.
    pub name: String,
    /// Digest of the component.
    pub digest: String,
    /// Whether it answered, or why who comes after it stood in.
    pub outcome: UseOutcome,
}

impl PolicyKind {
    /// Every kind of policy.
    pub const ALL: [Self; 3] = [Self::Rank, Self::Consolidation, Self::Budgets];

    /// The word of the binding's label and of the records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Consolidation => "consolidation",
            Self::Budgets => "budgets",
        }
    }
}

impl UseOutcome {
    /// Whether the policy answered.
    pub fn is_ok(&self) -> bool {
        match self {
            Self::Ok => true,
            Self::Fallback(_) => false,
        }
    }

    /// As records have it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Ok => "ok",
            Self::Fallback(text) => text,
        }
    }

    /// The kind of failure, if it is one.
    pub fn failure_reason(&self) -> Option<&str> {
        match self {
            Self::Ok => None,
            Self::Fallback(text) => text.split(':').next(),
        }
    }
}

impl From<String> for UseOutcome {
    fn from(text: String) -> Self {
        if text == Self::Ok.as_str() {
            Self::Ok
        } else {
            Self::Fallback(text)
        }
    }
}

impl From<UseOutcome> for String {
    fn from(outcome: UseOutcome) -> Self {
        match outcome {
            UseOutcome::Ok => UseOutcome::Ok.as_str().to_owned(),
            UseOutcome::Fallback(text) => text,
        }
    }
}

impl Display for PolicyKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Display for UseOutcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
