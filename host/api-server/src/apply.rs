//! Server-side apply: a manager states the fields it wants; the server merges, finds conflicts, and removes what
//! the manager no longer states and nobody else owns.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::kinds::ServedKind;
use crate::managed_fields::entry::{self, ManagedFieldsEntry};
use crate::managed_fields::fields_v1::FieldPath;
use crate::managed_fields::leaves::leaves;
use crate::managed_fields::shape::FieldSchema;
use crate::object_key::NamespacedName;
use crate::status::StatusError;
use crate::store::Store;
use crate::write_options::{ObjectPart, WriteOptions};

/// Applies an intent.
pub(super) fn run(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    key: &NamespacedName,
    intent: &Value,
    options: &WriteOptions,
) -> Result<Arc<Value>, StatusError> {
    let mut intent = intent.clone();
    check_intent(kind, key, &intent)?;
    // A revision in the intent is a precondition, all other server-owned metadata is none of its business.
    let revision = intent["metadata"]["resourceVersion"].clone();
    kind.to_storage(&mut intent);
    let manager = options.field_manager.as_deref().unwrap_or("unknown");
    let now = store.now();
    let mut mine = ManagedFieldsEntry::new(manager, "Apply", options.part, now);
    let wanted: Vec<(FieldPath, Value)> = leaves(FieldSchema::of(kind), &intent)
        .into_iter()
        .filter(|(path, _)| {
            (path[0] == "f:status") == (options.part == ObjectPart::Status) || !kind.has_status
        })
        .map(|(path, value)| (path, value.clone()))
        .collect();
    mine.paths = wanted.iter().map(|(path, _)| path.clone()).collect();
    let options = WriteOptions {
        is_apply: true,
        ..options.clone()
    };
    let Some(old) = store.get_to_write(&kind.resource, key) else {
        if options.part == ObjectPart::Status {
            return Err(StatusError::not_found(&kind.resource, &key.name));
        }
        entry::write(&mut intent, &[mine]);
        return store.create(kind, &key.namespace, intent, &options);
    };
    let mut object = (*old).clone();
    let mut entries = entry::read(&old);
    let conflicts = conflicts(&old, kind, manager, &wanted, &entries);
    if !options.takes_over && !conflicts.is_empty() {
        return Err(refusal(&old, &entries, &conflicts));
    }
    for Conflict { entry, path } in &conflicts {
        entries[*entry].paths.remove(*path);
    }
    let_go(&mut object, &entries, &mine);
    for (path, value) in &wanted {
        set(&mut object, path, value);
    }
    entries.retain(|e| !e.is_same_role(&mine));
    entries.push(mine);
    entry::write(&mut object, &entries);
    object["metadata"]["resourceVersion"] = if revision.is_string() {
        revision
    } else {
        old["metadata"]["resourceVersion"].clone()
    };
    if is_same_but_for_times(&old, &object) {
        return Ok(old);
    }
    store.update(kind, key, object, &options)
}

fn check_intent(
    kind: &ServedKind,
    key: &NamespacedName,
    intent: &Value,
) -> Result<(), StatusError> {
    if !intent.is_object() {
        return Err(StatusError::bad_request(
            "the object provided is not a JSON object",
        ));
    }
    if intent["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|list| !list.is_empty())
    {
        return Err(StatusError::bad_request(
            "metadata.managedFields must be nil",
        ));
    }
    for (field, given) in [
        ("apiVersion", &intent["apiVersion"]),
        ("kind", &intent["kind"]),
    ] {
        if given.as_str().is_none_or(str::is_empty) {
            return Err(StatusError::bad_request(format!(
                "invalid object type: {} {:?}: {field} must be set for apply",
                kind.kind, key.name
            )));
        }
    }
    Ok(())
}

/// Removes what the manager no longer states and nobody else owns.
fn let_go(object: &mut Value, entries: &[ManagedFieldsEntry], mine: &ManagedFieldsEntry) {
    let before: BTreeSet<FieldPath> = entries
        .iter()
        .filter(|e| e.is_same_role(mine))
        .flat_map(|e| e.paths.iter().cloned())
        .collect();
    for path in before.difference(&mine.paths) {
        let is_shared = entries
            .iter()
            .any(|e| !e.is_same_role(mine) && e.paths.contains(path));
        if !is_shared {
            remove(object, path);
        }
    }
}

/// A field that another manager owns with another value.
struct Conflict<'a> {
    /// Place of the other manager's entry.
    entry: usize,
    path: &'a FieldPath,
}

/// All of them, field by field.
fn conflicts<'a>(
    old: &Value,
    kind: &ServedKind,
    manager: &str,
    wanted: &'a [(FieldPath, Value)],
    entries: &[ManagedFieldsEntry],
) -> Vec<Conflict<'a>> {
    let current: std::collections::BTreeMap<FieldPath, &Value> =
        leaves(FieldSchema::of(kind), old).into_iter().collect();
    let mut conflicts = Vec::new();
    for (path, value) in wanted {
        if current.get(path).is_none_or(|now| *now == value) {
            continue;
        }
        for (at, entry) in entries.iter().enumerate() {
            let is_own = entry.manager == manager && entry.operation == "Apply";
            if !is_own && entry.paths.contains(path) {
                conflicts.push(Conflict { entry: at, path });
            }
        }
    }
    conflicts
}

/// What a manager is told that does not take fields over.
fn refusal(old: &Value, entries: &[ManagedFieldsEntry], conflicts: &[Conflict<'_>]) -> StatusError {
    let mut causes = Vec::new();
    let mut owners: BTreeSet<String> = BTreeSet::new();
    for conflict in conflicts {
        let entry = &entries[conflict.entry];
        let owner = if entry.operation == "Update" {
            format!(
                "{:?} using {}",
                entry.manager,
                old["apiVersion"].as_str().unwrap_or_default()
            )
        } else {
            format!("{:?}", entry.manager)
        };
        causes.push(json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with {owner}"),
            "field": dotted(conflict.path),
        }));
        owners.insert(owner);
    }
    let fields: Vec<String> = conflicts.iter().map(|it| dotted(it.path)).collect();
    let who = owners.into_iter().collect::<Vec<_>>().join(", ");
    let message = match fields.as_slice() {
        [one] => format!("Apply failed with 1 conflict: conflict with {who}: {one}"),
        many => format!(
            "Apply failed with {} conflicts: conflicts with {who}:\n- {}",
            many.len(),
            many.join("\n- ")
        ),
    };
    StatusError::apply_conflict(message, &causes)
}

/// `.spec.containers[name="web"].image`
fn dotted(path: &FieldPath) -> String {
    let mut text = String::new();
    for step in path {
        if let Some(name) = step.strip_prefix("f:") {
            text.push('.');
            text.push_str(name);
        } else if let Some(id) = step.strip_prefix("k:") {
            let id: Map<String, Value> = serde_json::from_str(id).unwrap_or_default();
            let pairs: Vec<String> = id.iter().map(|(k, v)| format!("{k}={v}")).collect();
            text.extend(["[", &pairs.join(","), "]"]);
        } else if let Some(value) = step.strip_prefix("v:") {
            text.extend(["[=", value, "]"]);
        }
    }
    text
}

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

/// Sets the value at a path, making what is missing on the way.
fn set(object: &mut Value, path: &[String], value: &Value) {
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
fn remove(object: &mut Value, path: &[String]) {
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

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether an apply changed nothing but the time of its entry.
fn is_same_but_for_times(old: &Value, new: &Value) -> bool {
    let without_times = |object: &Value| {
        let mut bare = object.clone();
        let entries = bare["metadata"]["managedFields"].as_array_mut();
        for entry in entries.into_iter().flatten() {
            entry["time"] = Value::Null;
        }
        let mut list = bare["metadata"]["managedFields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        list.sort_by_key(|entry| (entry["manager"].to_string(), entry["operation"].to_string()));
        (bare["metadata"].take(), bare, list)
    };
    let (mut old_metadata, old_rest, old_entries) = without_times(old);
    let (mut new_metadata, new_rest, new_entries) = without_times(new);
    for metadata in [&mut old_metadata, &mut new_metadata] {
        if let Some(fields) = metadata.as_object_mut() {
            fields.remove("managedFields");
        }
    }
    old_metadata == new_metadata && old_rest == new_rest && old_entries == new_entries
}
