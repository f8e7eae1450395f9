//! How a built-in kind is shown: its columns, and the cells of an object.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Name, type and priority of a column; priority 1 shows with `-o wide` only.
pub(super) type TableColumn = (&'static str, &'static str, u8);

/// How a built-in kind is shown.
pub(super) struct Printer {
    pub(super) columns: &'static [TableColumn],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
}

/// A column as a table defines it.
pub(super) fn definition(name: &str, kind: &str, priority: u8) -> Value {
    let format = if name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
}
