//! Drops fields that the schema does not know, and nulls where it allows none.

use serde_json::Value;

use super::Schema;

/// Fields every object has whatever its schema says.
const ALWAYS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object.
pub(super) fn root(schema: &Schema, object: &mut Value) {
    prune(schema, object, true);
}

fn prune(schema: &Schema, value: &mut Value, is_resource: bool) {
    match value {
        Value::Object(fields) => {
            let knows_all = schema.preserves_unknown || schema.additional.is_some();
            if !knows_all {
                fields.retain(|name, _| {
                    schema.properties.get(name).is_some()
                        || (is_resource && ALWAYS.contains(&name.as_str()))
                });
            }
            // A null with a default is left to it.
            fields.retain(|name, field| {
                let known = schema.field(name).filter(|_| field.is_null());
                known.is_none_or(|it| it.is_nullable || it.default.is_some())
            });
            for (name, field) in fields.iter_mut() {
                if is_resource && ALWAYS.contains(&name.as_str()) {
                    continue;
                }
                if let Some(inner) = schema.field(name) {
                    prune(inner, field, inner.is_embedded);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.item() {
                for item in items {
                    prune(inner, item, inner.is_embedded);
                }
            }
        }
        _ => {}
    }
}
