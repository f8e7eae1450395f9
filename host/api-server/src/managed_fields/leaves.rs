//! The fields of an object as paths, each with its value.

use crate::managed_fields::fields_v1::FieldPath;
use crate::managed_fields::shape::{FieldSchema, ListKeys};
use serde_json::{Map, Value};

/// The step that names an item of a list, if it carries its keys.
fn item_step(keys: &ListKeys, item: &Value) -> Option<String> {
    match keys {
        ListKeys::Atomic => None,
        ListKeys::Set => Some(format!("v:{item}")),
        ListKeys::Fields(names) => {
            let mut id = Map::new();
            for name in names {
                match item.get(name) {
                    Some(value) => {
                        id.insert(name.clone(), value.clone());
                    }
                    // Protocols have a default, other keys have none.
                    None if name == "protocol" => {
                        id.insert(name.clone(), "TCP".into());
                    }
                    None if name == "whenUnsatisfiable" => {
                        id.insert(name.clone(), "DoNotSchedule".into());
                    }
                    None => return None,
                }
            }
            Some(format!("k:{}", Value::Object(id)))
        }
    }
}

/// All paths to values in an object, with the values.
pub(crate) fn leaves<'a>(shape: FieldSchema<'a>, object: &'a Value) -> Vec<(FieldPath, &'a Value)> {
    leaves_unlike(shape, object, None)
}

/// The leaves of those parts of the object that another does not share: most writes change little.
pub(crate) fn leaves_unlike<'a>(
    shape: FieldSchema<'a>,
    object: &'a Value,
    other: Option<&Value>,
) -> Vec<(FieldPath, &'a Value)> {
    let mut found = Vec::new();
    let Some(map) = object.as_object() else {
        return found;
    };
    for (name, value) in map {
        if matches!(name.as_str(), "apiVersion" | "kind") {
            continue;
        }
        let other = other.and_then(|it| it.get(name));
        walk(shape, name, (value, other), &mut Vec::new(), &mut found);
    }
    found
}

/// Metadata that the server owns, whoever sends it.
const SERVER_OWNED: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

fn walk<'a>(
    parent: FieldSchema<'a>,
    name: &'a str,
    (value, other): (&'a Value, Option<&Value>),
    path: &mut FieldPath,
    found: &mut Vec<(FieldPath, &'a Value)>,
) {
    let is_server_owned =
        path.len() == 1 && path[0] == "f:metadata" && SERVER_OWNED.contains(&name);
    if is_server_owned || value.is_null() || other == Some(value) {
        return;
    }
    path.push(format!("f:{name}"));
    let shape = parent.field(name);
    match value {
        Value::Object(map) if !map.is_empty() && !shape.is_atomic_map() => {
            for (inner, value) in map {
                let other = other.and_then(|it| it.get(inner));
                walk(shape, inner, (value, other), path, found);
            }
        }
        Value::Array(items) => walk_list(parent, name, (value, items), path, found),
        _ => found.push((path.clone(), value)),
    }
    path.pop();
}

fn walk_list<'a>(
    parent: FieldSchema<'a>,
    name: &'a str,
    (value, items): (&'a Value, &'a [Value]),
    path: &mut FieldPath,
    found: &mut Vec<(FieldPath, &'a Value)>,
) {
    let keys = parent.list_keys(name);
    let steps: Option<Vec<String>> = items.iter().map(|item| item_step(&keys, item)).collect();
    let Some(steps) = steps.filter(|steps| !steps.is_empty()) else {
        found.push((path.clone(), value));
        return;
    };
    let shape = parent.field(name).item();
    for (step, item) in steps.into_iter().zip(items) {
        path.push(step);
        // The item itself is owned, too: so it goes when its last owner lets go of it.
        let mut own = path.clone();
        own.push(".".to_owned());
        found.push((own, &Value::Null));
        match item.as_object() {
            Some(map) => {
                for (inner, value) in map {
                    walk(shape, inner, (value, None), path, found);
                }
            }
            None => found.push((path.clone(), item)),
        }
        path.pop();
    }
}
