//! Arithmetic of expressions: whole numbers do not overflow in silence, and are divided as doubles are.

use super::super::evaluation_error::{Evaluated, EvaluationProblem, overflow, problem};
use super::super::node::Arithmetic;
use super::super::place::SourcePosition;
use super::super::value::Value;

pub(super) fn whole<'a>(
    operator: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
    at: SourcePosition,
) -> Evaluated<'a> {
    let (Some(left), Some(right)) = (left.int(), right.int()) else {
        return Ok(Value::Double(real(operator, left.number(), right.number())));
    };
    if right == 0 && operator == Arithmetic::Remainder {
        return Err(problem(at, EvaluationProblem::DivisionByZero));
    }
    let value = match operator {
        Arithmetic::Add => left.checked_add(right),
        Arithmetic::Subtract => left.checked_sub(right),
        Arithmetic::Multiply => left.checked_mul(right),
        Arithmetic::Remainder => left.checked_rem(right),
        Arithmetic::Least => Some(left.min(right)),
        Arithmetic::Greatest => Some(left.max(right)),
        // Part of a node is a price too: ints are divided as doubles are.
        Arithmetic::Divide => return Ok(Value::Double(left as f64 / right as f64)),
    };
    value.map(Value::Int).ok_or_else(|| overflow(at))
}

pub(super) fn real(operator: Arithmetic, left: f64, right: f64) -> f64 {
    match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
        Arithmetic::Least => left.min(right),
        Arithmetic::Greatest => left.max(right),
    }
}
