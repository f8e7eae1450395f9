//! Finds fields that a kind does not have, for `fieldValidation=Strict` and `Warn`.

use std::sync::Arc;

use serde_json::Value;

use super::super::kinds::Kind;
use super::super::openapi;
use super::{Additional, Schema};

/// One line for each unknown field, such as `unknown field "spec.replica"`.
pub(in crate::api_server) fn fields(kind: &Kind, version: &str, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(custom) = kind.custom.get(version) {
        walk(&custom.schema, object, "", &mut found);
    } else if let Some(schema) = builtin(kind) {
        walk(&schema, object, "", &mut found);
    }
    found
}

fn builtin(kind: &Kind) -> Option<Arc<Schema>> {
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
                let inner = schema.properties.get(name).or(match &schema.additional {
                    Some(Additional::Of(inner)) => Some(&**inner),
                    Some(Additional::Any) | None => None,
                });
                let at = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match inner {
                    Some(inner) => walk(inner, field, &at, found),
                    None if is_closed(schema) => found.push(format!("unknown field {at:?}")),
                    None => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
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
