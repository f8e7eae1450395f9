//! Fills in the defaults of absent fields.

use serde_json::Value;

use super::{Additional, Schema};

/// Applies defaults to a value and all below it.
pub(super) fn apply(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in &schema.properties {
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
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(inner) = schema.properties.get(name) {
                    apply(inner, field);
                } else if let Some(Additional::Of(inner)) = &schema.additional {
                    apply(inner, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                for item in items {
                    apply(inner, item);
                }
            }
        }
        _ => {}
    }
}
