//! The JSONPath of printer columns, as much of it as definitions use.

use serde_json::Value;

/// One step of a JSONPath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonPathStep {
    /// The field of that name.
    Field(String),
    /// An item by its place.
    Index(usize),
    /// Every item of a list.
    All,
    /// Items whose field equals a text.
    Where(String, String),
}

/// Parses paths such as `.status.conditions[?(@.type=="Ready")].status`; `\.` is a dot within a name.
pub(crate) fn parse(path: &str) -> Vec<JsonPathStep> {
    let mut steps = Vec::new();
    let mut name = String::new();
    let mut letters = path.chars().peekable();
    let flush = |name: &mut String, steps: &mut Vec<JsonPathStep>| {
        if !name.is_empty() {
            steps.push(JsonPathStep::Field(std::mem::take(name)));
        }
    };
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next()),
            '.' => flush(&mut name, &mut steps),
            '[' => {
                flush(&mut name, &mut steps);
                let inner: String = letters.by_ref().take_while(|&c| c != ']').collect();
                steps.extend(bracket(&inner));
            }
            '{' | '}' | '$' => {}
            other => name.push(other),
        }
    }
    flush(&mut name, &mut steps);
    steps
}

fn bracket(inner: &str) -> Option<JsonPathStep> {
    if inner == "*" {
        return Some(JsonPathStep::All);
    }
    if let Ok(at) = inner.parse() {
        return Some(JsonPathStep::Index(at));
    }
    let unquote = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    if let Some(test) = inner.strip_prefix("?(").and_then(|t| t.strip_suffix(')')) {
        let (field, value) = test.split_once("==")?;
        let field = field.trim().trim_start_matches("@.").to_owned();
        return Some(JsonPathStep::Where(field, unquote(value)));
    }
    Some(JsonPathStep::Field(unquote(inner)))
}

/// The values at the end of a path; nulls do not count.
pub(crate) fn find<'a>(object: &'a Value, steps: &[JsonPathStep]) -> Vec<&'a Value> {
    let mut at = vec![object];
    for step in steps {
        at = at
            .into_iter()
            .flat_map(|value| -> Vec<&'a Value> {
                let items = || value.as_array().into_iter().flatten();
                match step {
                    JsonPathStep::Field(name) => value.get(name).into_iter().collect(),
                    JsonPathStep::Index(index) => value.get(*index).into_iter().collect(),
                    JsonPathStep::All => match value {
                        Value::Object(fields) => fields.values().collect(),
                        _ => items().collect(),
                    },
                    JsonPathStep::Where(field, wanted) => items()
                        .filter(|i| i[field].as_str() == Some(wanted))
                        .collect(),
                }
            })
            .filter(|value| !value.is_null())
            .collect();
    }
    at
}
