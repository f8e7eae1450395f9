//! Running a compiled expression: a tree of nodes over the facts of one row.
//!
//! Types were settled when the expression was compiled, so nothing is looked up by name here. Every node
//! costs a step; the budget of steps is what fuel is to a component, and as repeatable.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;

/// What an expression looks at: one offering, one move, or one pool with one reason.
pub(crate) trait Facts {
    /// Name of a fact, resolved.
    type Variable: Copy + PartialEq + std::fmt::Debug + 'static;

    fn value(&self, variable: Self::Variable) -> Value<'_>;

    fn label(&self, key: &str) -> Option<&str>;
}

/// A value while it is computed with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A count of the tables, all of which are small enough.
    pub(crate) fn count(count: u32) -> Self {
        Self::Int(i64::from(count))
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// The number; what has none was refused when the expression was compiled.
    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Int(value) => *value as f64,
            Self::Double(value) => *value,
            Self::Bool(_) | Self::Text(_) => f64::NAN,
        }
    }

    fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Bool(_) | Self::Int(_) | Self::Double(_) => "",
        }
    }
}

/// A literal that owns its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
}

impl Literal {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Double(value) => Value::Double(*value),
            Self::Text(text) => Value::text(text),
        }
    }
}

/// An operator on two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Least,
    Greatest,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Not,
    Negate,
    ToDouble,
    ToInt,
    ToText,
    Size,
    Floor,
    Ceil,
    Round,
    Abs,
}

/// A question about two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// A compiled expression. Positions are kept where something can go wrong.
#[derive(Debug, Clone)]
pub(crate) enum Node<V> {
    Literal(Literal),
    Variable(V),
    Label(String, Position),
    HasLabel(String),
    Call(Function, Box<Node<V>>, Position),
    Whole(Arithmetic, Box<[Node<V>; 2]>, Position),
    Real(Arithmetic, Box<[Node<V>; 2]>),
    Join(Box<[Node<V>; 2]>),
    Compare(Comparison, Box<[Node<V>; 2]>),
    And(Box<[Node<V>; 2]>),
    Or(Box<[Node<V>; 2]>),
    If(Box<[Node<V>; 3]>),
    In(Box<Node<V>>, Vec<Node<V>>),
    Test(TextTest, Box<[Node<V>; 2]>),
    Matches(Box<Node<V>>, Regex),
}

/// Line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EvaluationError {
    #[error("{position}: the claim has no label {key:?}; test for it with {key:?} in labels")]
    NoLabel { position: Position, key: String },
    #[error("{position}: division by zero")]
    DivisionByZero { position: Position },
    #[error("{position}: the whole number is too large")]
    Overflow { position: Position },
    #[error("out of steps")]
    OutOfSteps,
}

/// How much computing is left.
#[derive(Debug)]
pub(crate) struct Steps {
    left: u64,
    granted: u64,
}

impl Steps {
    pub(crate) fn new(granted: u64) -> Self {
        Self {
            left: granted,
            granted,
        }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.granted - self.left
    }

    fn take(&mut self) -> Result<(), EvaluationError> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or(EvaluationError::OutOfSteps)?;
        Ok(())
    }
}

type Evaluated<'a> = Result<Value<'a>, EvaluationError>;

impl<V> Node<V> {
    /// Whether a node of the tree is such.
    pub(crate) fn any(&self, is_such: &impl Fn(&Self) -> bool) -> bool {
        let among = |nodes: &[Self]| nodes.iter().any(|node| node.any(is_such));
        is_such(self)
            || match self {
                Self::Literal(_) | Self::Variable(_) | Self::Label(..) | Self::HasLabel(_) => false,
                Self::Call(_, operand, _) | Self::Matches(operand, _) => operand.any(is_such),
                Self::Whole(_, operands, _)
                | Self::Real(_, operands)
                | Self::Join(operands)
                | Self::Compare(_, operands)
                | Self::And(operands)
                | Self::Or(operands)
                | Self::Test(_, operands) => among(&**operands),
                Self::If(parts) => among(&**parts),
                Self::In(value, list) => value.any(is_such) || among(list),
            }
    }
}

impl<V: Copy + PartialEq> Node<V> {
    /// The value for one row.
    pub(crate) fn evaluate<'a, F: Facts<Variable = V>>(
        &'a self,
        facts: &'a F,
        steps: &mut Steps,
    ) -> Evaluated<'a> {
        steps.take()?;
        match self {
            Self::Literal(literal) => Ok(literal.value()),
            Self::Variable(variable) => Ok(facts.value(*variable)),
            Self::Label(key, position) => {
                facts
                    .label(key)
                    .map(Value::text)
                    .ok_or_else(|| EvaluationError::NoLabel {
                        position: *position,
                        key: key.clone(),
                    })
            }
            Self::HasLabel(key) => Ok(Value::Bool(facts.label(key).is_some())),
            Self::Call(function, operand, position) => {
                call(*function, &operand.evaluate(facts, steps)?, *position)
            }
            Self::Whole(operator, operands, position) => {
                let (left, right) = both(operands, facts, steps)?;
                whole(*operator, &left, &right, *position)
            }
            Self::Real(operator, operands) => {
                let (left, right) = both(operands, facts, steps)?;
                Ok(Value::Double(real(
                    *operator,
                    left.number(),
                    right.number(),
                )))
            }
            Self::Join(operands) => {
                let (left, right) = both(operands, facts, steps)?;
                Ok(Value::Text(Cow::Owned(
                    [left.as_text(), right.as_text()].concat(),
                )))
            }
            Self::Compare(comparison, operands) => {
                let (left, right) = both(operands, facts, steps)?;
                Ok(Value::Bool(compare(*comparison, &left, &right)))
            }
            Self::And(operands) => decisive(operands, false, facts, steps),
            Self::Or(operands) => decisive(operands, true, facts, steps),
            Self::If(parts) => {
                let [condition, yes, no] = &**parts;
                let branch = if condition.evaluate(facts, steps)?.is_true() {
                    yes
                } else {
                    no
                };
                branch.evaluate(facts, steps)
            }
            Self::In(value, list) => among(value, list, facts, steps),
            Self::Test(test, operands) => {
                let (text, part) = both(operands, facts, steps)?;
                let (text, part) = (text.as_text(), part.as_text());
                Ok(Value::Bool(match test {
                    TextTest::StartsWith => text.starts_with(part),
                    TextTest::EndsWith => text.ends_with(part),
                    TextTest::Contains => text.contains(part),
                }))
            }
            Self::Matches(text, pattern) => Ok(Value::Bool(
                pattern.is_match(text.evaluate(facts, steps)?.as_text()),
            )),
        }
    }
}

/// Whether a value is in a list.
fn among<'a, F: Facts>(
    value: &'a Node<F::Variable>,
    list: &'a [Node<F::Variable>],
    facts: &'a F,
    steps: &mut Steps,
) -> Evaluated<'a> {
    let value = value.evaluate(facts, steps)?;
    for item in list {
        let item = item.evaluate(facts, steps)?;
        if compare(Comparison::Equal, &value, &item) {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn both<'a, F: Facts>(
    operands: &'a [Node<F::Variable>; 2],
    facts: &'a F,
    steps: &mut Steps,
) -> Result<(Value<'a>, Value<'a>), EvaluationError> {
    let [left, right] = operands;
    Ok((left.evaluate(facts, steps)?, right.evaluate(facts, steps)?))
}

/// `&&` and `||`: as CEL has it, one side that decides makes an error of the other one harmless.
fn decisive<'a, F: Facts>(
    operands: &'a [Node<F::Variable>; 2],
    decides: bool,
    facts: &'a F,
    steps: &mut Steps,
) -> Evaluated<'a> {
    let [left, right] = operands;
    let left = left.evaluate(facts, steps);
    if left.as_ref().is_ok_and(|it| it.is_true() == decides) {
        return left;
    }
    let right = right.evaluate(facts, steps);
    if right.as_ref().is_ok_and(|it| it.is_true() == decides) {
        return right;
    }
    left?;
    right
}

fn call<'a>(function: Function, operand: &Value<'a>, position: Position) -> Evaluated<'a> {
    let overflow = EvaluationError::Overflow { position };
    Ok(match function {
        Function::Not => Value::Bool(!operand.is_true()),
        Function::Negate => match operand {
            Value::Int(value) => Value::Int(value.checked_neg().ok_or(overflow)?),
            _ => Value::Double(-operand.number()),
        },
        Function::ToDouble => Value::Double(operand.number()),
        Function::ToInt => Value::Int(truncated(operand.number()).ok_or(overflow)?),
        Function::ToText => Value::Text(Cow::Owned(match operand {
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Double(value) => value.to_string(),
            Value::Text(text) => text.to_string(),
        })),
        Function::Size => {
            let size = i64::try_from(operand.as_text().chars().count());
            Value::Int(size.map_err(|_| overflow)?)
        }
        Function::Floor => Value::Double(operand.number().floor()),
        Function::Ceil => Value::Double(operand.number().ceil()),
        Function::Round => Value::Double(operand.number().round()),
        Function::Abs => match operand {
            Value::Int(value) => Value::Int(value.checked_abs().ok_or(overflow)?),
            _ => Value::Double(operand.number().abs()),
        },
    })
}

fn truncated(value: f64) -> Option<i64> {
    // Beyond 2^53 a float does not name one whole number.
    if value.abs() > 9_007_199_254_740_992.0 || value.is_nan() {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounded above, and truncation is what int() means"
    )]
    let whole = value as i64;
    Some(whole)
}

fn whole<'a>(
    operator: Arithmetic,
    left: &Value<'_>,
    right: &Value<'_>,
    position: Position,
) -> Evaluated<'a> {
    let (Value::Int(left), Value::Int(right)) = (left, right) else {
        return Ok(Value::Double(real(operator, left.number(), right.number())));
    };
    if *right == 0 && matches!(operator, Arithmetic::Divide | Arithmetic::Remainder) {
        return Err(EvaluationError::DivisionByZero { position });
    }
    let value = match operator {
        Arithmetic::Add => left.checked_add(*right),
        Arithmetic::Subtract => left.checked_sub(*right),
        Arithmetic::Multiply => left.checked_mul(*right),
        Arithmetic::Divide => left.checked_div(*right),
        Arithmetic::Remainder => left.checked_rem(*right),
        Arithmetic::Least => Some(*left.min(right)),
        Arithmetic::Greatest => Some(*left.max(right)),
    };
    value
        .map(Value::Int)
        .ok_or(EvaluationError::Overflow { position })
}

fn real(operator: Arithmetic, left: f64, right: f64) -> f64 {
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

fn compare(comparison: Comparison, left: &Value<'_>, right: &Value<'_>) -> bool {
    let ordering = match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        _ => left.number().partial_cmp(&right.number()),
    };
    match comparison {
        Comparison::Equal => ordering == Some(Ordering::Equal),
        Comparison::NotEqual => ordering != Some(Ordering::Equal),
        Comparison::Less => ordering == Some(Ordering::Less),
        Comparison::LessOrEqual => ordering.is_some_and(Ordering::is_le),
        Comparison::Greater => ordering == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => ordering.is_some_and(Ordering::is_ge),
    }
}
