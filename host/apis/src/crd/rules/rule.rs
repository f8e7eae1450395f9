//! One rule in CEL: where it holds, what it says, how it is worded to people.
//!
//! Evaluates nothing: the API server does.

/// One rule at one place of a schema.
#[derive(Debug)]
pub(in crate::crd) struct ValidationRule {
    /// Where, such as `spec.requirements[].key`.
    pub(in crate::crd) path: &'static str,
    /// What must hold, in CEL.
    pub(in crate::crd) rule: String,
    /// What the user reads when it does not.
    pub(in crate::crd) message: String,
}

pub(super) fn rule(
    path: &'static str,
    rule: impl Into<String>,
    message: impl Into<String>,
) -> ValidationRule {
    ValidationRule {
        path,
        rule: rule.into(),
        message: message.into(),
    }
}
