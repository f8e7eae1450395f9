//! The table of lists against the types that are served: how k8s-openapi merges each list of each kind.
//!
//! It merges by the key of strategic patches where a list has one, else as the list is kept for server-side apply.

use std::collections::BTreeSet;

use k8s_openapi::DeepMerge;
use serde_json::{Map, Value, json};

use super::*;
use crate::write::list_kind::{ListKind, list_kind};

/// k8s-openapi merges these by the names in their metadata; Kubernetes replaces the list.
const UNLIKE: (&str, &str) = ("spec", "volumeClaimTemplates");

#[derive(Clone)]
enum ObjectStep {
    Field(String),
    Item,
}

/// The object that has the value at the end of the path and nothing else.
fn wrapped(path: &[ObjectStep], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, step| match step {
        ObjectStep::Field(name) => json!({name: inner}),
        ObjectStep::Item => json!([inner]),
    })
}

/// The value at the end of the path.
fn unwrapped(path: &[ObjectStep], object: Value) -> Value {
    path.iter().fold(object, |mut outer, step| match step {
        ObjectStep::Field(name) => outer[name].take(),
        ObjectStep::Item => outer[0].take(),
    })
}

struct ListWalk<'a> {
    merge: fn(Value, Value) -> Value,
    definitions: &'a Value,
    /// Types that were looked at, with the name of the field around.
    seen: &'a mut BTreeSet<(String, String)>,
    faults: &'a mut Vec<String>,
    path: Vec<ObjectStep>,
}

impl ListWalk<'_> {
    /// A schema behind its reference, and the name of its type.
    fn resolved(&self, schema: &Value) -> (Value, String) {
        let schema = match schema["allOf"].as_array() {
            Some(parts) => &parts[0],
            None => schema,
        };
        let name = schema["$ref"].as_str().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        match self.definitions.get(&name) {
            Some(definition) => (definition.clone(), name),
            None => (schema.clone(), String::new()),
        }
    }

    fn object(&mut self, schema: &Value, parent: &str) {
        let (schema, name) = self.resolved(schema);
        if !name.is_empty() && !self.seen.insert((name, parent.to_owned())) {
            return;
        }
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            self.path.push(ObjectStep::Field(field.clone()));
            let (inner, _) = self.resolved(schema);
            if inner["type"] == "array" {
                self.list(&inner["items"], parent, field);
            } else if inner["additionalProperties"].is_object() {
                self.path.push(ObjectStep::Field("x".to_owned()));
                self.object(&inner["additionalProperties"], "x");
                self.path.pop();
            } else {
                self.object(schema, field);
            }
            self.path.pop();
        }
    }

    fn list(&mut self, items: &Value, parent: &str, field: &str) {
        if (parent, field) == UNLIKE {
            return;
        }
        let ours = list_kind(parent, field);
        let keys = match ours {
            ListKind::Atomic => None,
            ListKind::Set { .. } => Some(Vec::new()),
            ListKind::Map { merge, keys } => {
                Some(merge.map_or_else(|| keys.to_vec(), |key| vec![key]))
            }
        };
        let keys = keys.map(|keys| keys.into_iter().map(str::to_owned).collect());
        let theirs = self.merged_by(items);
        if theirs != keys {
            let fault = format!("{parent}.{field}: {ours:?}, and it merges by {theirs:?}");
            self.faults.push(fault);
        }
        // What is inside a list that is one value nobody looks at.
        if theirs.is_some() {
            self.path.push(ObjectStep::Item);
            self.object(items, field);
            self.path.pop();
        }
    }

    /// The keys by which the list at this path is merged; none of a set; nothing if it is replaced.
    fn merged_by(&self, items: &Value) -> Option<BTreeSet<String>> {
        let (items, _) = self.resolved(items);
        let item = |changed: &str| self.sample(&items, changed);
        let (two, one) = (json!([item(""), item("")]), json!([item("")]));
        if self.count(two, &one) == 1 {
            return None;
        }
        let fields = scalars(&items);
        let is_key = |field: &String| self.count(one.clone(), &json!([item(field)])) == 2;
        Some(fields.into_iter().filter(is_key).collect())
    }

    /// An item of which one field differs from what all others have.
    fn sample(&self, items: &Value, changed: &str) -> Value {
        let Some(properties) = items["properties"].as_object() else {
            return match items["type"].as_str() {
                Some("integer") => json!(1),
                Some("object") => json!({}),
                Some(_) | None => json!("a"),
            };
        };
        let mut fields = Map::new();
        for name in scalars(items) {
            let is_number = properties[&name]["type"] == "integer";
            let value = match (is_number, name == changed) {
                (true, is_changed) => json!(i32::from(is_changed)),
                (false, true) => json!("b"),
                (false, false) => json!("a"),
            };
            fields.insert(name, value);
        }
        // Times are the one thing that must be there.
        for (name, schema) in properties {
            if self.resolved(schema).0["format"] == "date-time" {
                fields.insert(name.clone(), json!("2026-01-01T00:00:00Z"));
            }
        }
        Value::Object(fields)
    }

    /// How many items come of one list merged into another.
    fn count(&self, into: Value, from: &Value) -> usize {
        let (into, from) = (wrapped(&self.path, into), wrapped(&self.path, from.clone()));
        let merged = unwrapped(&self.path, (self.merge)(into, from));
        merged.as_array().map_or(0, Vec::len)
    }
}

/// The fields of an item that hold plain texts and numbers.
fn scalars(items: &Value) -> Vec<String> {
    let fields = items["properties"].as_object().into_iter().flatten();
    let plain = fields.filter(|(_, it)| {
        it["type"] == "integer" || it["type"] == "string" && it["format"].is_null()
    });
    plain.map(|(name, _)| name.clone()).collect()
}

fn deep_merge<T>(into: Value, from: Value) -> Value
where
    T: DeepMerge + serde::Serialize + serde::de::DeserializeOwned,
{
    let read = |value: Value| {
        serde_json::from_value::<T>(value.clone()).unwrap_or_else(|e| panic!("{value}: {e}"))
    };
    let mut merged = read(into);
    merged.merge_from(read(from));
    serde_json::to_value(merged).unwrap()
}

macro_rules! walk {
    ($($type:ty, $traits:expr, [$($short:expr),*], [$($category:expr),*];)*) => {
        fn faults() -> Vec<String> {
            let (mut faults, mut seen) = (Vec::new(), BTreeSet::new());
            $(
                let mut generator = schema_generator();
                let schema = generator.subschema_for::<$type>().to_value();
                let definitions = Value::Object(generator.take_definitions(false));
                let mut walk = ListWalk {
                    merge: deep_merge::<$type>,
                    definitions: &definitions,
                    seen: &mut seen,
                    faults: &mut faults,
                    path: Vec::new(),
                };
                walk.object(&schema, "");
            )*
            faults
        }
    };
}
each_builtin!(walk);

#[test]
fn lists_are_told_apart_as_the_types_merge_them() {
    let faults = faults();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
