//! Columns of custom resources: JSONPath into the object, dates as ages.

use crate::served::json_path::find;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::since;
use crate::served::schema::PrinterColumn;

/// The columns as kubectl reads them; the name always comes first.
pub(super) fn definitions(columns: &[PrinterColumn]) -> Vec<Value> {
    let mut definitions = vec![super::printer::definition("Name", "string", 0)];
    for column in columns {
        let given = &column.definition;
        definitions.push(json!({
            "name": given["name"], "type": given["type"],
            "format": given["format"].as_str().unwrap_or_default(),
            "description": given["description"].as_str().unwrap_or_default(),
            "priority": given["priority"].as_i64().unwrap_or(0),
        }));
    }
    if columns.is_empty() {
        definitions.push(super::printer::definition("Age", "date", 0));
    }
    definitions
}

/// The cells of one object.
pub(super) fn cells(columns: &[PrinterColumn], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![super::cells::name(object)];
    for column in columns {
        let found = find(object, &column.steps);
        cells.push(cell(&column.definition, &found, now));
    }
    if columns.is_empty() {
        cells.push(super::cells::age(object, now));
    }
    cells
}

fn cell(definition: &Value, found: &[&Value], now: Timestamp) -> Value {
    let Some(first) = found.first() else {
        return Value::Null;
    };
    match definition["type"].as_str().unwrap_or_default() {
        "date" => since(first, now),
        "integer" | "number" | "boolean" if found.len() == 1 => (*first).clone(),
        _ => {
            let texts: Vec<String> = found
                .iter()
                .map(|value| match value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect();
            texts.join(",").into()
        }
    }
}
