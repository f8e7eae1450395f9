//! Taking an object apart field by field, so that nothing is passed over: what nobody took is reported.
//!
//! Knows no kind. Values of a wrong type are reported where they are taken.

use serde_json::{Map, Value};

use crate::report::{ConversionReport, Fate, ObjectOrigin};

/// The fields of one map that are not taken yet.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) origin: &'a ObjectOrigin,
    path: String,
    left: Map<String, Value>,
}

impl<'a> Fields<'a> {
    /// The fields of a value; one that is no map has none.
    pub(crate) fn new(origin: &'a ObjectOrigin, path: &str, value: Value) -> Self {
        let left = match value {
            Value::Object(left) => left,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        Self {
            origin,
            path: path.to_owned(),
            left,
        }
    }

    /// Path of a field, for the report.
    pub(crate) fn path(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// A field, unless it is absent or null.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.left.remove(field).filter(|value| !value.is_null())
    }

    /// The fields of a field.
    pub(crate) fn inner(&mut self, field: &str) -> Self {
        let value = self.take(field).unwrap_or_default();
        Self::new(self.origin, &self.path(field), value)
    }

    /// A field as text: numbers and switches as they are written.
    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        self.take(field).as_ref().and_then(as_text)
    }

    /// A whole number, written as such or as text.
    pub(crate) fn number(&mut self, field: &str) -> Option<i64> {
        let value = self.take(field)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    /// Texts of a list, or the one text that stands there.
    pub(crate) fn texts(&mut self, field: &str) -> Vec<String> {
        match self.take(field) {
            Some(Value::Array(items)) => items.iter().filter_map(as_text).collect(),
            Some(value) => as_text(&value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Elements of a list.
    pub(crate) fn list(&mut self, field: &str) -> Vec<Value> {
        match self.take(field) {
            Some(Value::Array(items)) => items,
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_),
            )
            | None => Vec::new(),
        }
    }

    /// Entries of a map of texts, in order of their keys.
    pub(crate) fn map(&mut self, field: &str) -> Vec<(String, String)> {
        match self.take(field) {
            Some(Value::Object(map)) => {
                let mut entries: Vec<_> = map
                    .into_iter()
                    .filter_map(|(key, value)| Some((key, as_text(&value)?)))
                    .collect();
                entries.sort();
                entries
            }
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_),
            )
            | None => Vec::new(),
        }
    }

    /// Reports fields that mean nothing any more.
    pub(crate) fn drop(&mut self, fields: &[&str], why: &str, report: &mut ConversionReport) {
        for field in fields {
            if self.take(field).is_some() {
                report.push(self.origin.note(Fate::Dropped, &self.path(field), why));
            }
        }
    }

    /// Whether a field is there and not taken.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.left.get(field).is_some_and(|value| !value.is_null())
    }

    /// What nobody took, to be passed on.
    pub(crate) fn into_left(self) -> Map<String, Value> {
        self.left
    }

    /// Reports what nobody took.
    pub(crate) fn finish(self, report: &mut ConversionReport) {
        for field in self.left.keys().filter(|field| self.has(field)) {
            let what =
                "a field that no version is known to have, or none that v1 has something for";
            report.push(self.origin.note(Fate::Lost, &self.path(field), what));
        }
    }
}

/// A scalar as it is written.
pub(crate) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Puts a value where it says something: neither null nor an empty list or map.
pub(crate) fn put(map: &mut Map<String, Value>, field: &str, value: Value) {
    let says_nothing = match &value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if !says_nothing {
        map.insert(field.to_owned(), value);
    }
}
