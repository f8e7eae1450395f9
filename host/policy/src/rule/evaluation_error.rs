//! Why an expression has no value.

use super::place::SourcePosition;
use super::steps::Spent;
use super::value::Value;

/// A fault of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvaluationProblem {
    #[error("division by zero")]
    DivisionByZero,
    #[error("the int is too large")]
    Overflow,
    #[error("{0}")]
    Pattern(String),
}

/// Why an expression has no value. Small, because it is looked for after each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    At(Box<(SourcePosition, EvaluationProblem)>),
    Spent(Spent),
}

impl From<Spent> for EvaluationError {
    fn from(spent: Spent) -> Self {
        Self::Spent(spent)
    }
}

pub(super) type Evaluated<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn overflow(at: SourcePosition) -> EvaluationError {
    problem(at, EvaluationProblem::Overflow)
}

/// Error for a fault at a place in the source.
pub(super) fn problem(at: SourcePosition, problem: EvaluationProblem) -> EvaluationError {
    EvaluationError::At(Box::new((at, problem)))
}
