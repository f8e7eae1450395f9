//! The fields of an object as paths, each with its value.

use crate::write::list_kind::default_of;
use crate::write::managed_fields::fields_v1::FieldPath;
use crate::write::managed_fields::shape::{FieldSchema, ListKeys};
use serde_json::{Map, Value};

/// The step that names an item of a list, if it carries its keys.
fn item_step(keys: &ListKeys, item: &Value) -> Option<String> {
    match keys {
        ListKeys::Atomic => None,
        ListKeys::Set => Some(format!("v:{item}")),
        ListKeys::Fields(names) => {
            let mut id = Map::new();
            for name in names {
                let default = || default_of(name).map(Value::from);
                let value = item.get(name).cloned().or_else(default)?;
                id.insert(name.clone(), value);
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
    let mut walk = Walk::default();
    for (name, value) in object.as_object().into_iter().flatten() {
        if matches!(name.as_str(), "apiVersion" | "kind") {
            continue;
        }
        let other = other.and_then(|it| it.get(name));
        walk.field(shape, name, value, other);
    }
    walk.found
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

/// What was found so far, and where the walk is.
#[derive(Default)]
struct Walk<'a> {
    path: FieldPath,
    found: Vec<(FieldPath, &'a Value)>,
}

impl<'a> Walk<'a> {
    fn field(
        &mut self,
        parent: FieldSchema<'a>,
        name: &'a str,
        value: &'a Value,
        other: Option<&Value>,
    ) {
        let is_metadata = self.path.len() == 1 && self.path[0] == "f:metadata";
        let is_server_owned = is_metadata && SERVER_OWNED.contains(&name);
        if is_server_owned || value.is_null() || other == Some(value) {
            return;
        }
        self.path.push(format!("f:{name}"));
        let shape = parent.field(name);
        match value {
            Value::Object(map) if !map.is_empty() && !shape.is_atomic_map() => {
                for (inner, value) in map {
                    let other = other.and_then(|it| it.get(inner));
                    self.field(shape, inner, value, other);
                }
            }
            Value::Array(items) => self.list(parent, name, value, items),
            _ => self.found.push((self.path.clone(), value)),
        }
        self.path.pop();
    }

    fn list(
        &mut self,
        parent: FieldSchema<'a>,
        name: &'a str,
        value: &'a Value,
        items: &'a [Value],
    ) {
        let keys = parent.list_keys(name);
        let steps: Option<Vec<String>> = items.iter().map(|item| item_step(&keys, item)).collect();
        let Some(steps) = steps.filter(|steps| !steps.is_empty()) else {
            self.found.push((self.path.clone(), value));
            return;
        };
        let shape = parent.field(name).item();
        for (step, item) in steps.into_iter().zip(items) {
            self.path.push(step);
            // The item itself is owned, too: so it goes when its last owner lets go of it.
            let mut own = self.path.clone();
            own.push(".".to_owned());
            self.found.push((own, &Value::Null));
            match item.as_object() {
                Some(map) => {
                    for (inner, value) in map {
                        self.field(shape, inner, value, None);
                    }
                }
                None => self.found.push((self.path.clone(), item)),
            }
            self.path.pop();
        }
    }
}
