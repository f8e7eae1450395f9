//! Sets of fields in the notation of `fieldsV1`.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// A path through an object, each step in the notation of `fieldsV1`: `f:name`, `k:{…}`, `v:…`.
pub(crate) type FieldPath = Vec<String>;

/// Paths as the nested object of `fieldsV1`.
pub(crate) fn to_fields(paths: &BTreeSet<FieldPath>) -> Value {
    let mut root = Map::new();
    for path in paths {
        let mut at = &mut root;
        for step in path {
            let next = at.entry(step.clone()).or_insert_with(|| json!({}));
            let Some(map) = next.as_object_mut() else {
                break;
            };
            at = map;
        }
    }
    Value::Object(root)
}

/// The paths in a `fieldsV1`.
pub(crate) fn from_fields(fields: &Value) -> BTreeSet<FieldPath> {
    let mut paths = BTreeSet::new();
    collect(fields, &mut Vec::new(), &mut paths);
    paths
}

fn collect(fields: &Value, path: &mut FieldPath, paths: &mut BTreeSet<FieldPath>) {
    match fields.as_object() {
        Some(map) if !map.is_empty() => {
            for (step, inner) in map {
                path.push(step.clone());
                collect(inner, path, paths);
                path.pop();
            }
        }
        _ if !path.is_empty() => {
            paths.insert(path.clone());
        }
        _ => {}
    }
}
