//! `format`: a text with operands in their places.

use super::super::evaluation_error::Evaluated;
use super::super::steps::Steps;
use super::super::value::Value;
use super::plain_text;

/// Digits behind the point that `format` writes.
const PRECISION_MAX: usize = 20;

/// `%s`, `%d`, `%f` with its digits, and `%%`; anything else stands as it is.
pub(super) fn formatted<'a>(
    text: &str,
    operands: &[Value<'a>],
    steps: &mut Steps,
) -> Evaluated<'a> {
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
