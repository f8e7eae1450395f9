//! Taking an object apart field by field, so that nothing is passed over: what nobody took is reported.
//!
//! Knows no kind. A value of a wrong type is not taken, and so is reported, too.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::report::{ConversionReport, Fate, ObjectOrigin};

/// The fields of one map that are not taken yet.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    pub(crate) origin: &'a ObjectOrigin,
    path: String,
    left: Map<String, Value>,
    /// What those should have been that were wanted and are something else.
    misread: BTreeMap<String, &'static str>,
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
            misread: BTreeMap::new(),
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

    /// What is read of a field that is of the right kind; one of another is left for the report.
    fn read<T>(
        &mut self,
        field: &str,
        kind: &'static str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.left.get(field).filter(|value| !value.is_null())?;
        let found = read(value);
        if found.is_some() {
            self.left.remove(field);
        } else {
            self.misread.insert(field.to_owned(), kind);
        }
        found
    }

    /// The fields of a field.
    pub(crate) fn inner(&mut self, field: &str) -> Self {
        let map = self.read(field, "a map", |it| it.is_object().then(|| it.clone()));
        Self::new(self.origin, &self.path(field), map.unwrap_or_default())
    }

    /// A field as text: numbers and switches as they are written.
    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        self.read(field, "a text", as_text)
    }

    /// A whole number, written as such or as text.
    pub(crate) fn number(&mut self, field: &str) -> Option<i64> {
        self.read(field, "a whole number", |it| {
            it.as_i64().or_else(|| it.as_str()?.parse().ok())
        })
    }

    /// Texts of a list, or the one text that stands there.
    pub(crate) fn texts(&mut self, field: &str) -> Vec<String> {
        let texts = self.read(field, "a list of texts", |it| match it.as_array() {
            Some(items) => items.iter().map(as_text).collect(),
            None => as_text(it).map(|it| vec![it]),
        });
        texts.unwrap_or_default()
    }

    /// Elements of a list.
    pub(crate) fn list(&mut self, field: &str) -> Vec<Value> {
        let items = self.read(field, "a list", |it| it.as_array().cloned());
        items.unwrap_or_default()
    }

    /// Entries of a map of texts, in order of their keys.
    pub(crate) fn map(&mut self, field: &str) -> Vec<(String, String)> {
        let entries = self.read(field, "a map of texts", |it| {
            let entries = it.as_object()?.iter();
            let entries = entries.map(|(key, value)| Some((key.clone(), as_text(value)?)));
            entries.collect::<Option<Vec<_>>>()
        });
        let mut entries = entries.unwrap_or_default();
        entries.sort();
        entries
    }

    /// Entries of a map of texts that is written as JSON in a text; an empty text has none.
    pub(crate) fn json_map(&mut self, field: &str) -> Map<String, Value> {
        let entries = self.read(field, "a map of texts in JSON", |it| {
            let text = as_text(it)?;
            if text.trim().is_empty() {
                return Some(Map::new());
            }
            let entries: Map<String, Value> = serde_json::from_str(&text).ok()?;
            let entries = entries.into_iter();
            let entries = entries.map(|(key, value)| Some((key, Value::from(as_text(&value)?))));
            entries.collect()
        });
        entries.unwrap_or_default()
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
            let unknown =
                "a field that no version is known to have, or none that v1 has something for";
            let misread = self.misread.get(field);
            let what = misread.map(|kind| format!("not {kind}, and so not read"));
            let what = what.unwrap_or_else(|| unknown.to_owned());
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
