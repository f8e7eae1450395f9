//! Reads and changes an object at the paths of `fieldsV1`.
//!
//! Knows nothing of managers: what may be changed is decided before.

use serde_json::{Map, Value, json};

fn is_item(item: &Value, step: &str) -> bool {
    if let Some(id) = step.strip_prefix("k:") {
        let id: Map<String, Value> = serde_json::from_str(id).unwrap_or_default();
        return id.iter().all(|(key, value)| {
            item[key] == *value
                || (item[key].is_null() && matches!(key.as_str(), "protocol" | "whenUnsatisfiable"))
        });
    }
    let value: Option<Value> = step
        .strip_prefix("v:")
        .and_then(|v| serde_json::from_str(v).ok());
    value.as_ref() == Some(item)
}

/// Whether there is something at a path.
pub(super) fn has(object: &Value, path: &[String]) -> bool {
    let found = path
        .iter()
        .try_fold(object, |at, step| match step.strip_prefix("f:") {
            Some(name) => at.get(name),
            None => at.as_array()?.iter().find(|item| is_item(item, step)),
        });
    found.is_some()
}

/// Sets the value at a path, making what is missing on the way.
pub(super) fn set(object: &mut Value, path: &[String], value: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *object = value.clone();
        return;
    };
    if step == "." {
        if object.is_null() {
            *object = json!({});
        }
        return;
    }
    if let Some(name) = step.strip_prefix("f:") {
        if !object.is_object() {
            *object = json!({});
        }
        set(&mut object[name], rest, value);
        return;
    }
    if !object.is_array() {
        *object = json!([]);
    }
    let Some(items) = object.as_array_mut() else {
        return;
    };
    let at = items
        .iter()
        .position(|item| is_item(item, step))
        .unwrap_or_else(|| {
            let fresh = match step.strip_prefix("k:") {
                Some(id) => serde_json::from_str(id).unwrap_or_default(),
                None => step
                    .strip_prefix("v:")
                    .and_then(|v| serde_json::from_str(v).ok())
                    .unwrap_or_default(),
            };
            items.push(fresh);
            items.len() - 1
        });
    if step.starts_with("k:") {
        set(&mut items[at], rest, value);
    }
}

/// Removes the value at a path, and the maps and lists that become empty by it.
pub(super) fn remove(object: &mut Value, path: &[String]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    if let Some(name) = step.strip_prefix("f:") {
        let Some(map) = object.as_object_mut() else {
            return;
        };
        if rest.is_empty() {
            map.remove(name);
        } else if let Some(inner) = map.get_mut(name) {
            remove(inner, rest);
            if is_empty(inner) {
                map.remove(name);
            }
        }
        return;
    }
    let Some(items) = object.as_array_mut() else {
        return;
    };
    let Some(at) = items.iter().position(|item| is_item(item, step)) else {
        return;
    };
    // The item's own mark, or a value of a set: the whole item goes.
    if rest.is_empty() || rest.first().is_some_and(|s| s == ".") {
        items.remove(at);
    } else {
        remove(&mut items[at], rest);
    }
}

pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
