//! Fills in the defaults of absent fields.

use serde_json::Value;

use super::Schema;

/// Applies defaults to a value and all below it.
pub(super) fn apply(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in schema.properties.iter() {
                let Some(default) = &inner.default else {
                    continue;
                };
                // A null that the schema does not allow reads as absent.
                let is_absent = match fields.get(name) {
                    None => true,
                    Some(Value::Null) => !inner.is_nullable,
                    Some(_) => false,
                };
                if is_absent {
                    fields.insert(name.to_owned(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(inner) = schema.field(name) {
                    apply(inner, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.item() {
                for item in items {
                    apply(inner, item);
                }
            }
        }
        _ => {}
    }
}
