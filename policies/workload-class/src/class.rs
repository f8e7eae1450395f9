//! What a class of workloads asks of moves.

use guest_sdk::Json;

/// What must hold of a move of such pods.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    pub(super) consolidate: bool,
    pub(super) drift: bool,
    pub(super) min_savings: f64,
    pub(super) min_age_seconds: f64,
}

impl Class {
    /// Of pods that no class speaks of.
    pub(super) const FREE: Self = Self {
        consolidate: true,
        drift: true,
        min_savings: 0.0,
        min_age_seconds: 0.0,
    };

    /// What suits both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            consolidate: self.consolidate && other.consolidate,
            drift: self.drift && other.drift,
            min_savings: self.min_savings.max(other.min_savings),
            min_age_seconds: self.min_age_seconds.max(other.min_age_seconds),
        }
    }

    /// `None` where it says what nobody reads.
    pub(super) fn read(value: &Json) -> Option<Self> {
        let Json::Object(fields) = value else {
            return None;
        };
        let mut class = Self::FREE;
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("consolidate", Json::Bool(value)) => class.consolidate = *value,
                ("drift", Json::Bool(value)) => class.drift = *value,
                ("minSavings", Json::Number(value)) if *value >= 0.0 => class.min_savings = *value,
                ("minAgeMinutes", Json::Number(value)) if *value >= 0.0 => {
                    class.min_age_seconds = 60.0 * value;
                }
                _ => return None,
            }
        }
        Some(class)
    }
}
