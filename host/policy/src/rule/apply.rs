//! Effects of the language's functions on values.
//!
//! Whatever looks at a text, or makes one, pays for its length before it begins.

mod format;
mod texts;

use apis::GoDuration;
use jiff::Timestamp;

use super::evaluation_error::{Evaluated, overflow};
use super::functions::{ConvertsTo, FoldsTo, Function, ReadsAs, StringSearch};
use super::place::SourcePosition;
use super::steps::Steps;
use super::value::Value;
use format::formatted;
use texts::{changed, found, joined, split};

/// Applies a function to operands whose types were settled before.
pub(super) fn apply<'a>(
    function: Function,
    operands: &[Value<'a>],
    at: SourcePosition,
    steps: &mut Steps,
) -> Evaluated<'a> {
    if function == Function::IsThere {
        return Ok(Value::Bool(!operands.iter().any(Value::is_absent)));
    }
    if operands.iter().any(Value::is_absent) {
        return Ok(match function {
            // Absent is false, so that it is not is true.
            Function::Not => Value::Bool(true),
            Function::Find(
                StringSearch::StartsWith | StringSearch::EndsWith | StringSearch::Contains,
            ) => Value::Bool(false),
            Function::Find(StringSearch::IndexOf | StringSearch::LastIndexOf)
            | Function::Negate
            | Function::Abs
            | Function::Floor
            | Function::Ceil
            | Function::Round
            | Function::Truncate
            | Function::Convert(_)
            | Function::Read(_)
            | Function::Size
            | Function::Fold(_)
            | Function::Join
            | Function::Split
            | Function::Format
            | Function::Change(_)
            | Function::IsThere => Value::Absent,
        });
    }
    let Some((first, rest)) = operands.split_first() else {
        return Ok(Value::Absent);
    };
    match function {
        Function::Not => Ok(Value::Bool(!first.is_true())),
        Function::Negate | Function::Abs => match first.int() {
            Some(value) if function == Function::Negate => whole(value.checked_neg(), at),
            Some(value) => whole(value.checked_abs(), at),
            None if function == Function::Negate => Ok(Value::Double(-first.number())),
            None => Ok(Value::Double(first.number().abs())),
        },
        Function::Floor => Ok(Value::Double(first.number().floor())),
        Function::Ceil => Ok(Value::Double(first.number().ceil())),
        Function::Round => Ok(Value::Double(first.number().round())),
        Function::Truncate => Ok(Value::Double(first.number().trunc())),
        Function::Convert(to) => converted(to, first, at, steps),
        Function::Read(kind) => Ok(read(kind, first.as_text())),
        Function::Size => size(first, steps),
        Function::Fold(to) => folded(to, first, at, steps),
        Function::Join => joined(first, rest, steps),
        Function::Split => split(first, rest, steps),
        Function::Format => formatted(first.as_text(), rest, steps),
        Function::Find(finds) => found(finds, first, rest, steps),
        Function::Change(to) => changed(to, first, rest, steps),
        Function::IsThere => Ok(Value::Bool(true)),
    }
}

fn whole<'a>(value: Option<i64>, at: SourcePosition) -> Evaluated<'a> {
    value.map(Value::Int).ok_or_else(|| overflow(at))
}

fn converted<'a>(
    to: ConvertsTo,
    value: &Value<'a>,
    at: SourcePosition,
    steps: &mut Steps,
) -> Evaluated<'a> {
    let text = value.as_text().trim();
    let is_text = value.is_text();
    steps.look(text.len())?;
    match to {
        ConvertsTo::Text => {
            let text = plain_text(value);
            steps.make(text.len())?;
            Ok(Value::made(&text))
        }
        ConvertsTo::Int if is_text => Ok(text.parse().map_or(Value::Absent, Value::Int)),
        ConvertsTo::Int => match value.int() {
            Some(value) => Ok(Value::Int(value)),
            None => whole(truncated(value.number()), at),
        },
        ConvertsTo::Double if is_text => {
            let number = text.parse::<f64>().ok().filter(|it| it.is_finite());
            Ok(number.map_or(Value::Absent, Value::Double))
        }
        ConvertsTo::Double => Ok(Value::Double(value.number())),
    }
}

/// The text of a value that is no list and no map.
fn plain_text(value: &Value<'_>) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
        Value::Text(_) | Value::Made(_) => value.as_text().to_owned(),
        Value::Moment(seconds) => {
            Timestamp::from_second(*seconds).map_or_else(|_| String::new(), |it| it.to_string())
        }
        Value::Absent | Value::List(_) | Value::Items(_) | Value::Entries(_) => String::new(),
    }
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

/// Texts of Kubernetes as numbers and moments; absent when they are none.
fn read<'a>(kind: ReadsAs, text: &str) -> Value<'a> {
    match kind {
        ReadsAs::Quantity => apis::quantity::parse_millis(text)
            .map_or(Value::Absent, |millis| Value::Double(millis as f64 / 1e3)),
        ReadsAs::Duration => text.parse::<GoDuration>().map_or(Value::Absent, |it| {
            Value::Double(it.as_nanos() as f64 / 1e9)
        }),
        ReadsAs::Timestamp => text
            .parse::<Timestamp>()
            .map_or(Value::Absent, |moment| Value::Moment(moment.as_second())),
    }
}

fn size<'a>(value: &Value<'_>, steps: &mut Steps) -> Evaluated<'a> {
    let size = if value.is_text() {
        let text = value.as_text();
        steps.look(text.len())?;
        text.chars().count()
    } else {
        value.len()
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// Sums and ends of a list of numbers; of an empty one, 0 and absent.
fn folded<'a>(
    to: FoldsTo,
    list: &Value<'a>,
    at: SourcePosition,
    steps: &mut Steps,
) -> Evaluated<'a> {
    steps.take(u64::try_from(list.len()).unwrap_or(u64::MAX))?;
    let mut so_far: Option<Value<'a>> = (to == FoldsTo::Sum).then_some(Value::Int(0));
    for item in list.items() {
        let next = match (so_far, item) {
            (_, Value::Absent) => return Ok(Value::Absent),
            (None, item) => item,
            (Some(Value::Int(left)), Value::Int(right)) => Value::Int(match to {
                FoldsTo::Least => left.min(right),
                FoldsTo::Greatest => left.max(right),
                FoldsTo::Sum => left.checked_add(right).ok_or_else(|| overflow(at))?,
            }),
            (Some(left), right) => {
                let (left, right) = (left.number(), right.number());
                Value::Double(match to {
                    FoldsTo::Least => left.min(right),
                    FoldsTo::Greatest => left.max(right),
                    FoldsTo::Sum => left + right,
                })
            }
        };
        so_far = Some(next);
    }
    Ok(so_far.unwrap_or(Value::Absent))
}

/// Why a text is no quantity, duration or moment, when it is written out.
pub(super) fn unreadable(kind: ReadsAs, text: &str) -> Option<String> {
    match kind {
        ReadsAs::Quantity => apis::quantity::parse_millis(text)
            .err()
            .map(|error| format!("{error}; write one such as \"64Gi\" or \"500m\"")),
        ReadsAs::Duration => text
            .parse::<GoDuration>()
            .err()
            .map(|error| format!("{error}; write one such as \"1h30m\"")),
        ReadsAs::Timestamp => text.parse::<Timestamp>().err().map(|_| {
            format!("{text:?} is no timestamp; write one such as \"2026-12-24T00:00:00Z\"")
        }),
    }
}

/// The texts of two values as one.
pub(super) fn concatenated<'a>(
    left: &Value<'_>,
    right: &Value<'_>,
    steps: &mut Steps,
) -> Evaluated<'a> {
    let (left, right) = (left.as_text(), right.as_text());
    steps.make(left.len() + right.len())?;
    Ok(Value::made(&[left, right].concat()))
}
