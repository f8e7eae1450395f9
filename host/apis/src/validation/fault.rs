//! Faults of fields, in the words of the API server. Which rule finds it is no business of this file.

use crate::Operator;
use crate::budget_nodes::BudgetError;
use crate::nodeoverlay::PriceChangeError;
use std::fmt;

/// One fault of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the field, such as `spec.template.spec.taints[0].key`.
    pub field: String,
    /// Value of the field.
    pub value: String,
    /// Fault of the value.
    pub fault: FieldFault,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}: {}", self.field, self.value, self.fault)
    }
}

/// A fault of a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// Not a qualified name.
    #[error(
        "not a qualified name: want an optional DNS prefix and '/', then letters, digits, '-', '_' or '.'"
    )]
    NotQualifiedName,
    /// Not a label value.
    #[error(
        "not a label value: want at most 63 letters, digits, '-', '_' or '.', a letter or digit at both ends"
    )]
    NotLabelValue,
    /// Label that users may not set.
    #[error("label domain {domain:?} is restricted; allowed are its well-known labels only")]
    RestrictedDomain {
        /// Restricted domain of the label.
        domain: String,
    },
    /// Label that users may not set.
    #[error("label is restricted")]
    RestrictedLabel,
    /// The same key and effect twice among a pool's taints.
    #[error("duplicate taint key and effect {effect}")]
    DuplicateTaint {
        /// The effect both have.
        effect: String,
    },
    /// Not a taint effect.
    #[error("unknown taint effect {effect:?}")]
    TaintEffect {
        /// Effect as it was written.
        effect: String,
    },
    /// `In` without values.
    #[error("operator {operator} must have a value defined")]
    NoValues {
        /// Operator of the requirement.
        operator: Operator,
    },
    /// A bound that is not one whole number.
    #[error("operator {operator} must have a single positive integer value")]
    NotOneInteger {
        /// Operator of the requirement.
        operator: Operator,
    },
    /// Fewer values than minValues asks for.
    #[error(
        "operator In with minValues {min_values} must have at least that many values, has {values}"
    )]
    FewerThanMinValues {
        /// Number of values that is asked for.
        min_values: i64,
        /// Number of values that the requirement has.
        values: usize,
    },
    /// No value is one that any instance type has.
    #[error("no valid value, want one of {}", expected.join(", "))]
    NoKnownValue {
        /// Values that instance types have.
        expected: Vec<&'static str>,
    },
    /// A budget whose nodes cannot be read.
    #[error(transparent)]
    BudgetNodes(#[from] BudgetError),
    /// A schedule without a duration, or a duration without a schedule.
    #[error("'schedule' must be set with 'duration'")]
    ScheduleWithoutDuration,
    /// A price that cannot be read.
    #[error(transparent)]
    Price(#[from] PriceChangeError),
    /// A resource that overlays may not change.
    #[error("resource cannot be overlaid")]
    WellKnownResource,
}

/// All faults in one line, as a condition's message.
pub fn message(faults: &[Invalid]) -> String {
    faults
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Collects faults under a path.
pub(super) struct FieldFaults(pub(super) Vec<Invalid>);

impl FieldFaults {
    pub(super) fn push(&mut self, field: impl Into<String>, value: &str, fault: FieldFault) {
        self.0.push(Invalid {
            field: field.into(),
            value: value.to_owned(),
            fault,
        });
    }
}
