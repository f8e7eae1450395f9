//! What rows of all kinds are made of: what is left out, names by their symbols, pairs.

use apis::CapacityType;
use hooks::columns::word;
use serde_json::{Map, Value, json};

use super::super::Draft;

/// Names and numbers of a row.
pub(super) type CaseRow = Map<String, Value>;

pub(super) fn draft<const N: usize>(
    left_out: &[(usize, &str)],
    fields: [(&str, Value); N],
) -> Draft {
    let comments = left_out.iter().filter(|(count, _)| *count > 0);
    let fields = fields.into_iter().filter(|(_, value)| *value != json!([]));
    Draft {
        comments: comments
            .map(|(count, what)| format!("{count} further {what} are left out"))
            .collect(),
        fields: fields.map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}

/// What is not as usual.
pub(super) fn put(row: &mut CaseRow, key: &str, value: Value, usual: &Value) {
    if value != *usual {
        row.insert(key.to_owned(), value);
    }
}

pub(super) fn pairs(pairs: &[(u32, u32)], symbols: &[String]) -> Value {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(key, value)| {
        let value = json!(word(symbols, *value));
        (word(symbols, *key).to_owned(), value)
    });
    Value::Object(pairs.collect())
}

/// A word that a case may have, whatever a record holds.
pub(super) fn capacity_type(code: u8) -> &'static str {
    let known = CapacityType::of_code(code);
    known.unwrap_or(CapacityType::OnDemand).as_str()
}
