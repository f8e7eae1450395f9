//! Why an expression has no value.

use super::place::Place;
use super::steps::Spent;
use super::value::Value;

/// What is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
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
    At(Box<(Place, Problem)>),
    Spent(Spent),
}

impl From<Spent> for EvaluationError {
    fn from(spent: Spent) -> Self {
        Self::Spent(spent)
    }
}

pub(super) type Evaluated<'a> = Result<Value<'a>, EvaluationError>;

pub(super) fn overflow(at: Place) -> EvaluationError {
    problem(at, Problem::Overflow)
}

/// What is wrong at a place.
pub(super) fn problem(at: Place, problem: Problem) -> EvaluationError {
    EvaluationError::At(Box::new((at, problem)))
}
