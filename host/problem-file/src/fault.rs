//! Faults of a problem file and of its objects; the wording is in `Display` only.

use std::fmt;

use serde::Serialize;

/// Why a file cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Not JSON, or not an object.
    #[error("not the JSON of such a file: {0}")]
    Syntax(String),
    /// The document is of another form.
    #[error("{path}: expected {expected}, found {found}")]
    Form {
        /// Path in the file.
        path: String,
        /// Form that is expected, in words.
        expected: String,
        /// Form that was found, in words.
        found: String,
    },
    /// A key that a problem file does not have.
    #[error("unknown key {key:?}, expected one of {}", expected.join(", "))]
    UnknownKey {
        key: String,
        /// The keys there are.
        expected: Vec<&'static str>,
    },
}

/// Something wrong with one object. The object is left out, or takes no part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObjectFault {
    /// Place in the file, such as `pods[3]`, or file and line of a manifest.
    pub place: String,
    /// Name of the object, with its namespace; empty when it has none.
    pub object: String,
    /// Path of the field in the object.
    pub field: String,
    /// Fault in words, with the value.
    pub message: String,
}

impl fmt::Display for ObjectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            object,
            field,
            message,
        } = self;
        let head = if object.is_empty() {
            place.clone()
        } else {
            format!("{place} ({object})")
        };
        let parts = [&head, field, message].into_iter();
        let parts: Vec<&str> = parts
            .map(String::as_str)
            .filter(|it| !it.is_empty())
            .collect();
        f.write_str(&parts.join(": "))
    }
}

/// Collects the faults of one object.
#[derive(Debug, Default)]
pub(super) struct ObjectFaults(pub(super) Vec<(String, String)>);

impl ObjectFaults {
    pub(super) fn push(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push((field.into(), message.into()));
    }
}
