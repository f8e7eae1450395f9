//! Held against the project's own definitions: fields that v1 does not have are taken out and reported.
//!
//! Bounds and rules are not checked here; an API server does that for who calls.

use apis::crd;
use serde_json::{Map, Value};

/// The schema of a kind of v1, where it is one of ours.
pub(crate) fn of_kind(kind: &str) -> Option<Value> {
    let definition = crd::all()
        .into_iter()
        .find(|it| it.spec.names.kind == kind)?;
    let schema = definition
        .spec
        .versions
        .into_iter()
        .find_map(|version| version.schema?.open_api_v3_schema)?;
    serde_json::to_value(schema).ok()
}

/// Takes out of `value` what its schema does not have, and returns the paths.
pub(crate) fn prune(value: &mut Value, schema: &Value) -> Vec<String> {
    let mut gone = Vec::new();
    walk(value, schema, "", &mut gone);
    gone
}

fn walk(value: &mut Value, schema: &Value, path: &str, gone: &mut Vec<String>) {
    match value {
        Value::Object(fields) => object(fields, schema, path, gone),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &schema["items"], &format!("{path}[{index}]"), gone);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn object(fields: &mut Map<String, Value>, schema: &Value, path: &str, gone: &mut Vec<String>) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    // What is written about every object, and is not in the definitions.
    let is_metadata = path == "metadata";
    if is_metadata || schema["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    let names: Vec<String> = fields.keys().cloned().collect();
    for name in names {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match properties.get(&name) {
            None => {
                fields.remove(&name);
                gone.push(path);
            }
            Some(schema) => {
                if let Some(value) = fields.get_mut(&name) {
                    walk(value, schema, &path, gone);
                }
            }
        }
    }
}
