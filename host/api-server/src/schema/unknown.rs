//! Finds fields that a kind does not have, for `fieldValidation=Strict` and `Warn`.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, ValueType};
use crate::kinds::ServedKind;
use crate::openapi;

/// One line for each unknown field, such as `unknown field "spec.replica"`.
pub(crate) fn fields(kind: &ServedKind, version: &str, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(custom) = kind.custom.get(version) {
        walk(&custom.schema, object, "", &mut found);
    } else if let Some(schema) = builtin(kind) {
        walk(&schema, object, "", &mut found);
    }
    found
}

/// The first value of a built-in kind whose type is not its field's, in the words of a Go decoder.
pub(crate) fn mistyped(kind: &ServedKind, object: &Value) -> Option<String> {
    if kind.is_custom() {
        return None;
    }
    let schema = builtin(kind)?;
    let (path, given, wanted) = first_mistyped(&schema, object, "")?;
    Some(format!(
        "json: cannot unmarshal {given} into Go struct field {}{path} of type {wanted}",
        kind.kind
    ))
}

fn first_mistyped(
    schema: &Schema,
    value: &Value,
    path: &str,
) -> Option<(String, &'static str, &'static str)> {
    let wanted = schema.kind.filter(|_| !schema.is_int_or_string);
    let (given, is_right) = match value {
        // Null is absence, or the removal of a patch.
        Value::Null => return None,
        Value::Bool(_) => ("bool", matches!(wanted, None | Some(ValueType::Boolean))),
        Value::Number(_) => (
            "number",
            matches!(wanted, None | Some(ValueType::Integer | ValueType::Number)),
        ),
        Value::String(_) => ("string", matches!(wanted, None | Some(ValueType::String))),
        Value::Array(_) => ("array", matches!(wanted, None | Some(ValueType::Array))),
        Value::Object(_) => ("object", matches!(wanted, None | Some(ValueType::Object))),
    };
    if !is_right && !schema.preserves_unknown {
        return Some((path.to_owned(), given, wanted.map_or("", ValueType::as_str)));
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            if name.starts_with('$') {
                return None;
            }
            first_mistyped(schema.field(name)?, field, &format!("{path}.{name}"))
        }),
        Value::Array(items) => {
            let inner = schema.item()?;
            items
                .iter()
                .find_map(|item| first_mistyped(inner, item, path))
        }
        _ => None,
    }
}

fn builtin(kind: &ServedKind) -> Option<Arc<Schema>> {
    openapi::builtin_schema(&kind.group, &kind.kind)
}

fn walk(schema: &Schema, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                // The server's own fields, and the directives of strategic merge patches.
                let is_known_anyway = name.starts_with('$')
                    || (path.is_empty()
                        && matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
                if is_known_anyway {
                    continue;
                }
                let at = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match schema.field(name) {
                    Some(inner) => walk(inner, field, &at, found),
                    None if is_closed(schema) => found.push(format!("unknown field {at:?}")),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.item() {
                for (at, item) in items.iter().enumerate() {
                    walk(inner, item, &format!("{path}[{at}]"), found);
                }
            }
        }
        _ => {}
    }
}

/// Whether a schema lists all the fields there may be.
fn is_closed(schema: &Schema) -> bool {
    !schema.preserves_unknown && schema.additional.is_none() && !schema.properties.is_empty()
}
