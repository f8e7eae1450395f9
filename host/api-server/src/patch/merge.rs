//! JSON Merge Patch, RFC 7386.

use serde_json::{Map, Value};

/// Merges `change` into `target`: null removes, objects merge, all else replaces.
pub(crate) fn apply(target: &mut Value, change: &Value) {
    let Value::Object(fields) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else {
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            map.remove(name);
        } else {
            apply(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
