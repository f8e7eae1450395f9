//! The expressions of a binding as they are written.

use hooks::binding::keys::{APPLIES_TO_KEY, EXCLUDE_KEY, MESSAGE_KEY, RULE_KEY, VARIABLES_KEY};

use crate::digest::digest;

/// The expressions of a binding, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct RuleSource {
    /// `data.rule`: cost, approval or allowance; empty when there is none.
    pub rule: String,
    /// `data.exclude`: conditions, one a line, each with its reason after `//`. Ranking only.
    pub exclude: String,
    /// `data.variables`: names for expressions, one a line, which the other keys may use.
    pub variables: String,
    /// `data.message`: a string that gives the reason of a rejection, an exclusion or an allowance.
    pub message: String,
    /// `data.applies-to`: kinds of moves that a consolidation rule judges.
    pub applies_to: String,
}

impl RuleSource {
    /// The keys of a binding's data that belong to a rule, with what they hold.
    pub(crate) fn keys(&self) -> [(&'static str, &str); 5] {
        let Self {
            rule,
            exclude,
            variables,
            message,
            applies_to,
        } = self;
        [
            (RULE_KEY, rule),
            (EXCLUDE_KEY, exclude),
            (VARIABLES_KEY, variables),
            (MESSAGE_KEY, message),
            (APPLIES_TO_KEY, applies_to),
        ]
    }

    /// Tells equal rules; the same for those without the later keys as before there were any.
    pub(super) fn digest(&self) -> String {
        let Self { rule, exclude, .. } = self;
        let mut whole = if exclude.is_empty() {
            rule.clone()
        } else {
            format!("{rule}\n{exclude}")
        };
        for (key, text) in self.keys().into_iter().skip(2) {
            if !text.is_empty() {
                whole = format!("{whole}\n{key}: {text}");
            }
        }
        digest(whole.as_bytes())
    }
}
