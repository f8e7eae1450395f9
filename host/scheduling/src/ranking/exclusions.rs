//! Report of the offerings that a ranking policy ruled out: how many, and why.
//!
//! Bounded, whatever a policy says; which offerings they are is decided elsewhere.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Distinct reasons that are told.
const REASONS_MAX: usize = 5;
/// A longer reason is cut here.
const REASON_CHARS_MAX: usize = 200;

/// Offerings that a policy ruled out, counted by its reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    total: usize,
    /// The most frequent first.
    reasons: Vec<ExclusionReason>,
}

/// A reason, and how many offerings it ruled out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExclusionReason {
    reason: String,
    offerings: usize,
}

impl Exclusions {
    /// One reason an offering.
    pub fn of<'a>(reasons: impl IntoIterator<Item = &'a str>) -> Self {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in reasons {
            *counts.entry(reason.trim()).or_default() += 1;
        }
        let total = counts.values().sum();
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(reason, offerings)| (Reverse(*offerings), *reason));
        counts.truncate(REASONS_MAX);
        let reasons = counts.into_iter().map(|(reason, offerings)| {
            let reason = if reason.is_empty() {
                "no reason given"
            } else {
                reason
            };
            ExclusionReason {
                reason: reason.chars().take(REASON_CHARS_MAX).collect(),
                offerings,
            }
        });
        Self {
            total,
            reasons: reasons.collect(),
        }
    }

    /// Number of offerings that were ruled out.
    pub fn total(&self) -> usize {
        self.total
    }
}

/// The reasons in a line.
impl std::fmt::Display for Exclusions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut listed = 0;
        for (index, it) in self.reasons.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} ({})", it.reason, it.offerings)?;
            listed += it.offerings;
        }
        if listed < self.total {
            write!(f, ", other reasons ({})", self.total - listed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_reasons_are_told_with_their_counts() {
        let long = "x".repeat(300);
        let cut = format!("{} (1)", "x".repeat(200));
        let seven = ["g", "f", "e", "d", "c", "b", "a", "a"];
        let cases: [(&[&str], &str); 5] = [
            (&[], ""),
            (&["not spot", "not spot"], "not spot (2)"),
            (&["", " "], "no reason given (2)"),
            (&[&long], &cut),
            (
                &seven,
                "a (2), b (1), c (1), d (1), e (1), other reasons (2)",
            ),
        ];
        for (reasons, expected) in cases {
            let exclusions = Exclusions::of(reasons.iter().copied());
            assert_eq!(exclusions.to_string(), expected);
            assert_eq!(exclusions.total(), reasons.len());
        }
    }
}
