//! Faults of a pod object.

use super::key::PodKey;

/// Why a pod object cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPod {
    /// It has no name.
    #[error("pod has no name")]
    Unnamed,
    /// It has no spec.
    #[error("pod {0} has no spec")]
    NoSpec(PodKey),
    /// A quantity does not parse.
    #[error("pod {pod}: {field}: {reason}")]
    Quantity {
        pod: PodKey,
        field: String,
        /// Fault of the quantity, in words.
        reason: String,
    },
    /// An operator is unknown.
    #[error("pod {pod}: unknown operator {operator:?} for key {key:?}")]
    Operator {
        pod: PodKey,
        /// Label key that the operator is for.
        key: String,
        operator: String,
    },
}
