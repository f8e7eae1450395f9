//! What the functions of the language do with values.
//!
//! Whatever looks at a text, or makes one, pays for its length before it begins.

use std::rc::Rc;

use apis::GoDuration;
use jiff::Timestamp;

use super::evaluation_error::{Evaluated, overflow};
use super::functions::Function;
use super::place::SourcePosition;
use super::steps::Steps;
use super::value::Value;

/// What a list takes for each of its items.
const ITEM_BYTES: usize = 32;
/// Digits behind the point that `format` writes.
const PRECISION_MAX: usize = 20;

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
            Function::StartsWith | Function::EndsWith | Function::Contains => Value::Bool(false),
            _ => Value::Absent,
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
        Function::ToDouble | Function::ToInt | Function::ToText => {
            converted(function, first, at, steps)
        }
        Function::Quantity | Function::Duration | Function::Timestamp => {
            Ok(read(function, first.as_text()))
        }
        Function::Size => size(first, steps),
        Function::Sum | Function::Least | Function::Greatest => folded(function, first, at, steps),
        Function::Join => joined(first, rest, steps),
        Function::Split => split(first, rest, steps),
        Function::Format => formatted(first.as_text(), rest, steps),
        Function::StartsWith
        | Function::EndsWith
        | Function::Contains
        | Function::IndexOf
        | Function::LastIndexOf => found(function, first, rest, steps),
        Function::LowerAscii
        | Function::UpperAscii
        | Function::Trim
        | Function::Replace
        | Function::Substring
        | Function::CharAt => changed(function, first, rest, steps),
        Function::IsThere => Ok(Value::Bool(true)),
    }
}

fn whole<'a>(value: Option<i64>, at: SourcePosition) -> Evaluated<'a> {
    value.map(Value::Int).ok_or_else(|| overflow(at))
}

fn converted<'a>(
    function: Function,
    value: &Value<'a>,
    at: SourcePosition,
    steps: &mut Steps,
) -> Evaluated<'a> {
    let text = value.as_text().trim();
    let is_text = value.is_text();
    steps.look(text.len())?;
    match function {
        Function::ToText => {
            let text = plain_text(value);
            steps.make(text.len())?;
            Ok(Value::made(&text))
        }
        Function::ToInt if is_text => Ok(text.parse().map_or(Value::Absent, Value::Int)),
        Function::ToInt => match value.int() {
            Some(value) => Ok(Value::Int(value)),
            None => whole(truncated(value.number()), at),
        },
        _ if is_text => {
            let number = text.parse::<f64>().ok().filter(|it| it.is_finite());
            Ok(number.map_or(Value::Absent, Value::Double))
        }
        _ => Ok(Value::Double(value.number())),
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
fn read<'a>(function: Function, text: &str) -> Value<'a> {
    match function {
        Function::Quantity => apis::quantity::parse_millis(text)
            .map_or(Value::Absent, |millis| Value::Double(millis as f64 / 1e3)),
        Function::Duration => text.parse::<GoDuration>().map_or(Value::Absent, |it| {
            Value::Double(it.as_nanos() as f64 / 1e9)
        }),
        _ => text
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
    function: Function,
    list: &Value<'a>,
    at: SourcePosition,
    steps: &mut Steps,
) -> Evaluated<'a> {
    steps.take(u64::try_from(list.len()).unwrap_or(u64::MAX))?;
    let mut so_far: Option<Value<'a>> = (function == Function::Sum).then_some(Value::Int(0));
    for item in list.items() {
        let next = match (so_far, item) {
            (_, Value::Absent) => return Ok(Value::Absent),
            (None, item) => item,
            (Some(Value::Int(left)), Value::Int(right)) => Value::Int(match function {
                Function::Least => left.min(right),
                Function::Greatest => left.max(right),
                _ => left.checked_add(right).ok_or_else(|| overflow(at))?,
            }),
            (Some(left), right) => {
                let (left, right) = (left.number(), right.number());
                Value::Double(match function {
                    Function::Least => left.min(right),
                    Function::Greatest => left.max(right),
                    _ => left + right,
                })
            }
        };
        so_far = Some(next);
    }
    Ok(so_far.unwrap_or(Value::Absent))
}

fn found<'a>(
    function: Function,
    text: &Value<'_>,
    rest: &[Value<'_>],
    steps: &mut Steps,
) -> Evaluated<'a> {
    let (text, part) = (text.as_text(), rest.first().map_or("", Value::as_text));
    let looked_at = match function {
        Function::StartsWith | Function::EndsWith => part.len(),
        _ => text.len() + part.len(),
    };
    steps.look(looked_at)?;
    // Places are counted in characters.
    let place = |bytes: usize| {
        let before = text.get(..bytes).map_or(0, |it| it.chars().count());
        i64::try_from(before).unwrap_or(i64::MAX)
    };
    Ok(match function {
        Function::StartsWith => Value::Bool(text.starts_with(part)),
        Function::EndsWith => Value::Bool(text.ends_with(part)),
        Function::Contains => Value::Bool(text.contains(part)),
        Function::LastIndexOf => Value::Int(text.rfind(part).map_or(-1, place)),
        _ => {
            let from = rest.get(1).and_then(Value::int).unwrap_or(0);
            let Some(from) = bytes_at(text, from) else {
                return Ok(Value::Int(-1));
            };
            let at = text.get(from..).and_then(|it| it.find(part));
            Value::Int(at.map_or(-1, |at| place(from + at)))
        }
    })
}

/// Where the character of a number begins, or where the text ends; `None` beyond.
fn bytes_at(text: &str, place: i64) -> Option<usize> {
    let place = usize::try_from(place).ok()?;
    let mut begins = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    begins.nth(place)
}

fn changed<'a>(
    function: Function,
    text: &Value<'_>,
    rest: &[Value<'_>],
    steps: &mut Steps,
) -> Evaluated<'a> {
    let text = text.as_text();
    steps.look(text.len())?;
    let int = |at: usize| rest.get(at).and_then(Value::int);
    let made = match function {
        Function::LowerAscii => text.to_ascii_lowercase(),
        Function::UpperAscii => text.to_ascii_uppercase(),
        Function::Trim => text.trim().to_owned(),
        Function::CharAt => {
            let at = int(0).and_then(|it| bytes_at(text, it));
            let one = at.and_then(|at| text.get(at..)).map(|it| it.chars().next());
            match one {
                Some(one) => one.map(String::from).unwrap_or_default(),
                None => return Ok(Value::Absent),
            }
        }
        Function::Substring => {
            let begin = int(0).and_then(|it| bytes_at(text, it));
            let end = int(1).map_or(Some(text.len()), |it| bytes_at(text, it));
            let part = begin.zip(end).and_then(|(begin, end)| text.get(begin..end));
            match part {
                Some(part) => part.to_owned(),
                None => return Ok(Value::Absent),
            }
        }
        _ => return replaced(text, rest, steps),
    };
    steps.make(made.len())?;
    Ok(Value::made(&made))
}

fn replaced<'a>(text: &str, rest: &[Value<'_>], steps: &mut Steps) -> Evaluated<'a> {
    let part = |at: usize| rest.get(at).map_or("", Value::as_text);
    let (old, new) = (part(0), part(1));
    let most = match rest.get(2).and_then(Value::int) {
        Some(most) => usize::try_from(most).unwrap_or(usize::MAX),
        None => usize::MAX,
    };
    let places = text.matches(old).take(most).count();
    steps.make(text.len() + places.saturating_mul(new.len()))?;
    Ok(Value::made(&text.replacen(old, new, most)))
}

fn split<'a>(text: &Value<'_>, rest: &[Value<'_>], steps: &mut Steps) -> Evaluated<'a> {
    let (text, separator) = (text.as_text(), rest.first().map_or("", Value::as_text));
    let most = rest.get(1).and_then(Value::int);
    let most = most.map_or(usize::MAX, |it| usize::try_from(it).unwrap_or(usize::MAX));
    // An empty separator parts characters, and nothing before the first.
    let parts: Vec<&str> = if separator.is_empty() {
        steps.make(text.len().saturating_mul(ITEM_BYTES))?;
        let begins = text.char_indices();
        begins
            .filter_map(|(at, it)| text.get(at..at + it.len_utf8()))
            .take(most)
            .collect()
    } else {
        steps.look(text.len() + separator.len())?;
        let count = text.matches(separator).count() + 1;
        steps.make(text.len() + count.min(most).saturating_mul(ITEM_BYTES))?;
        text.splitn(most, separator).collect()
    };
    let parts = parts.into_iter().map(Value::made);
    Ok(Value::List(Rc::new(parts.collect())))
}

fn joined<'a>(list: &Value<'a>, rest: &[Value<'a>], steps: &mut Steps) -> Evaluated<'a> {
    let separator = rest.first().map_or("", Value::as_text);
    let mut made = String::new();
    for (number, item) in list.items().enumerate() {
        if item.is_absent() {
            return Ok(Value::Absent);
        }
        let separator = if number == 0 { "" } else { separator };
        steps.take(1)?;
        steps.make(separator.len() + item.as_text().len())?;
        made.push_str(separator);
        made.push_str(item.as_text());
    }
    Ok(Value::made(&made))
}

/// `%s`, `%d`, `%f` with its digits, and `%%`; anything else stands as it is.
fn formatted<'a>(text: &str, operands: &[Value<'a>], steps: &mut Steps) -> Evaluated<'a> {
    steps.make(text.len())?;
    let mut operands = operands.iter();
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        made.push_str(before);
        let digits = after.strip_prefix('.').map_or("", |it| {
            let end = it.find(|it: char| !it.is_ascii_digit());
            it.get(..end.unwrap_or(it.len())).unwrap_or_default()
        });
        let point = usize::from(after.starts_with('.')) + digits.len();
        let verb = after.get(point..).and_then(|it| it.chars().next());
        let written = match verb {
            Some('%') => "%".to_owned(),
            Some('s' | 'd') => operands.next().map(plain_text).unwrap_or_default(),
            Some('f') => {
                let precision = digits.parse().unwrap_or(6).min(PRECISION_MAX);
                let number = operands.next().map_or(f64::NAN, Value::number);
                format!("{number:.precision$}")
            }
            Some(_) | None => {
                made.push('%');
                rest = after;
                continue;
            }
        };
        steps.make(written.len())?;
        made.push_str(&written);
        rest = after.get(point + 1..).unwrap_or_default();
    }
    made.push_str(rest);
    Ok(Value::made(&made))
}

/// Why a text is no quantity, duration or moment, when it is written out.
pub(super) fn unreadable(function: Function, text: &str) -> Option<String> {
    match function {
        Function::Quantity => apis::quantity::parse_millis(text)
            .err()
            .map(|error| format!("{error}; write one such as \"64Gi\" or \"500m\"")),
        Function::Duration => text
            .parse::<GoDuration>()
            .err()
            .map(|error| format!("{error}; write one such as \"1h30m\"")),
        Function::Timestamp => text.parse::<Timestamp>().err().map(|_| {
            format!("{text:?} is no timestamp; write one such as \"2026-12-24T00:00:00Z\"")
        }),
        _ => None,
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
