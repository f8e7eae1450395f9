//! Finds fields that a kind does not have, for `fieldValidation=Strict` and `Warn`, and values of a wrong type.
//!
//! Says what it finds; whether that is refused is the request's.

use std::sync::Arc;

use serde_json::Value;

use super::{Schema, ValueType};
use crate::builtin::schemas;
use crate::served::kinds::ServedKind;

/// One line for each unknown field, such as `unknown field "spec.replica"`.
pub(crate) fn fields(kind: &ServedKind, version: &str, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(custom) = kind.custom.get(version) {
        walk(SchemaPlace::root(&custom.schema), object, "", &mut found);
    } else if let Some(schema) = builtin(kind) {
        let root = SchemaPlace::root(&schema);
        walk(root, object, "", &mut found);
        let metadata = &object["metadata"];
        if let Some(below) = root.field("metadata", metadata) {
            walk(below, metadata, "metadata", &mut found);
        }
    }
    found
}

/// The first value of a built-in kind whose type is not its field's, in the words of a Go decoder.
pub(crate) fn mistyped(kind: &ServedKind, object: &Value) -> Option<String> {
    if kind.is_custom() {
        return None;
    }
    let schema = builtin(kind)?;
    let (path, given, wanted) = first_mistyped(SchemaPlace::root(&schema), object, "")?;
    Some(format!(
        "json: cannot unmarshal {given} into Go struct field {}{path} of type {wanted}",
        kind.kind
    ))
}

/// A schema where it holds, with the one around it that is part of itself.
#[derive(Clone, Copy)]
struct SchemaPlace<'a> {
    schema: &'a Schema,
    outer: Option<&'a Schema>,
}

impl<'a> SchemaPlace<'a> {
    fn root(schema: &'a Schema) -> Self {
        let outer = schema.is_within_itself.then_some(schema);
        Self { schema, outer }
    }

    /// The place of a value whose schema is part of this one.
    fn below(self, schema: &'a Schema, value: &Value) -> Self {
        let repeated = self
            .outer
            .filter(|_| schema.repeats_outer && value.is_object());
        let schema = repeated.unwrap_or(schema);
        let outer = schema.is_within_itself.then_some(schema).or(self.outer);
        Self { schema, outer }
    }

    fn field(self, name: &str, value: &Value) -> Option<Self> {
        let schema = self.schema.field(name)?;
        Some(self.below(schema, value))
    }

    fn item(self, value: &Value) -> Option<Self> {
        let schema = self.schema.item()?;
        Some(self.below(schema, value))
    }
}

fn first_mistyped(
    place: SchemaPlace<'_>,
    value: &Value,
    path: &str,
) -> Option<(String, &'static str, &'static str)> {
    let schema = place.schema;
    let wanted = schema.kind.filter(|_| !schema.is_int_or_string);
    let (given, is_right) = match value {
        // Null is absence, or the removal of a patch.
        Value::Null => return None,
        Value::Bool(_) => ("bool", matches!(wanted, None | Some(ValueType::Boolean))),
        Value::Number(number) => (
            "number",
            match wanted {
                None | Some(ValueType::Number) => true,
                Some(ValueType::Integer) => !number.is_f64(),
                Some(
                    ValueType::Object | ValueType::Array | ValueType::String | ValueType::Boolean,
                ) => false,
            },
        ),
        Value::String(_) => ("string", matches!(wanted, None | Some(ValueType::String))),
        Value::Array(_) => ("array", matches!(wanted, None | Some(ValueType::Array))),
        Value::Object(_) => ("object", matches!(wanted, None | Some(ValueType::Object))),
    };
    if !is_right {
        return Some((path.to_owned(), given, wanted.map_or("", ValueType::as_str)));
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            if name.starts_with('$') {
                return None;
            }
            let below = place.field(name, field)?;
            first_mistyped(below, field, &format!("{path}.{name}"))
        }),
        Value::Array(items) => items
            .iter()
            .find_map(|item| first_mistyped(place.item(item)?, item, path)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn builtin(kind: &ServedKind) -> Option<Arc<Schema>> {
    schemas::schema_of(&kind.group, &kind.kind)
}

fn walk(place: SchemaPlace<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_object_of_its_own = path.is_empty() || place.schema.is_embedded;
            for (name, field) in fields {
                // The server's own fields, and the directives of strategic merge patches.
                let is_known_anyway = name.starts_with('$')
                    || (is_object_of_its_own
                        && matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
                if is_known_anyway {
                    continue;
                }
                let at = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match place.field(name, field) {
                    Some(below) => walk(below, field, &at, found),
                    None if is_closed(place.schema) => found.push(format!("unknown field {at:?}")),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if let Some(below) = place.item(item) {
                    walk(below, item, &format!("{path}[{at}]"), found);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a schema lists all the fields there may be.
fn is_closed(schema: &Schema) -> bool {
    let is_object = schema.kind == Some(ValueType::Object) || !schema.properties.is_empty();
    is_object && !schema.preserves_unknown && schema.additional.is_none()
}
