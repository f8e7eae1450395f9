//! Functions of texts and lists of texts. Whatever is made pays for its length before it is made.

use std::rc::Rc;

use super::super::evaluation_error::Evaluated;
use super::super::functions::{StringChange, StringSearch};
use super::super::steps::{ITEM_BYTES, Steps};
use super::super::value::Value;

pub(super) fn found<'a>(
    finds: StringSearch,
    text: &Value<'_>,
    rest: &[Value<'_>],
    steps: &mut Steps,
) -> Evaluated<'a> {
    let (text, part) = (text.as_text(), rest.first().map_or("", Value::as_text));
    let looked_at = match finds {
        StringSearch::StartsWith | StringSearch::EndsWith => part.len(),
        StringSearch::Contains | StringSearch::IndexOf | StringSearch::LastIndexOf => {
            text.len() + part.len()
        }
    };
    steps.look(looked_at)?;
    // Places are counted in characters.
    let place = |bytes: usize| {
        let before = text.get(..bytes).map_or(0, |it| it.chars().count());
        i64::try_from(before).unwrap_or(i64::MAX)
    };
    Ok(match finds {
        StringSearch::StartsWith => Value::Bool(text.starts_with(part)),
        StringSearch::EndsWith => Value::Bool(text.ends_with(part)),
        StringSearch::Contains => Value::Bool(text.contains(part)),
        StringSearch::LastIndexOf => Value::Int(text.rfind(part).map_or(-1, place)),
        StringSearch::IndexOf => {
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

pub(super) fn changed<'a>(
    to: StringChange,
    text: &Value<'_>,
    rest: &[Value<'_>],
    steps: &mut Steps,
) -> Evaluated<'a> {
    let text = text.as_text();
    steps.look(text.len())?;
    let int = |at: usize| rest.get(at).and_then(Value::int);
    let made = match to {
        StringChange::LowerAscii => text.to_ascii_lowercase(),
        StringChange::UpperAscii => text.to_ascii_uppercase(),
        StringChange::Trim => text.trim().to_owned(),
        StringChange::CharAt => {
            let at = int(0).and_then(|it| bytes_at(text, it));
            let one = at.and_then(|at| text.get(at..)).map(|it| it.chars().next());
            match one {
                Some(one) => one.map(String::from).unwrap_or_default(),
                None => return Ok(Value::Absent),
            }
        }
        StringChange::Substring => {
            let begin = int(0).and_then(|it| bytes_at(text, it));
            let end = int(1).map_or(Some(text.len()), |it| bytes_at(text, it));
            let part = begin.zip(end).and_then(|(begin, end)| text.get(begin..end));
            match part {
                Some(part) => part.to_owned(),
                None => return Ok(Value::Absent),
            }
        }
        StringChange::Replace => return replaced(text, rest, steps),
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

pub(super) fn split<'a>(text: &Value<'_>, rest: &[Value<'_>], steps: &mut Steps) -> Evaluated<'a> {
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

pub(super) fn joined<'a>(list: &Value<'a>, rest: &[Value<'a>], steps: &mut Steps) -> Evaluated<'a> {
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
