//! Server-side apply: a manager states the fields it wants; the server merges, finds conflicts, and removes what
//! the manager no longer states and nobody else owns.

mod edit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::edit::{has, is_empty, remove, set};

use crate::object_key::NamespacedName;
use crate::served::kinds::ServedKind;
use crate::status::StatusError;
use crate::store::Store;
use crate::write::identity::check_identity;
use crate::write::managed_fields::entry::{self, ManagedFieldsEntry};
use crate::write::managed_fields::fields_v1::FieldPath;
use crate::write::managed_fields::leaves::leaves;
use crate::write::managed_fields::shape::FieldSchema;
use crate::write::options::{ObjectPart, WriteOptions};

/// Applies an intent.
pub(crate) fn run(
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
    check_identity(kind, &key.namespace, Some(&key.name), &mut intent)?;
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
    let current: BTreeMap<FieldPath, &Value> =
        leaves(FieldSchema::of(kind), &old).into_iter().collect();
    let conflicts = conflicts(&current, manager, &wanted, &entries);
    if !options.takes_over && !conflicts.is_empty() {
        return Err(refusal(&old, &entries, &conflicts));
    }
    for Conflict { entry, path } in &conflicts {
        entries[*entry].paths.remove(*path);
    }
    let_go(&mut object, &entries, &mine);
    for (path, value) in &wanted {
        // A map or list without anything in it is to be there: what others have in it stays.
        let is_there = is_empty(value) && !current.contains_key(path) && has(&object, path);
        if !is_there {
            set(&mut object, path, value);
        }
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
    let given = [&intent["apiVersion"], &intent["kind"]].map(|it| it.as_str().unwrap_or_default());
    for (field, given) in ["apiVersion", "kind"].into_iter().zip(given) {
        if given.is_empty() {
            return Err(StatusError::bad_request(format!(
                "invalid object type: {} {:?}: {field} must be set for apply",
                kind.kind, key.name
            )));
        }
    }
    let [api_version, _] = given;
    let mut served = kind.versions.iter().map(|it| kind.api_version(it));
    if !served.any(|it| it == api_version) {
        return Err(StatusError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {api_version}, \
             expected: {}",
            kind.api_version(&kind.storage_version)
        )));
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
    let others = entries.iter().filter(|e| !e.is_same_role(mine));
    let others: Vec<&BTreeSet<FieldPath>> = others.map(|e| &e.paths).collect();
    for path in before.difference(&mine.paths) {
        // The mark of an item stands for the item with all that is in it.
        let whole = path.strip_suffix(&[".".to_owned()]).unwrap_or(path);
        let is_kept = is_key_of_item(path)
            || has_any_within(&mine.paths, whole)
            || others.iter().any(|paths| has_any_within(paths, whole));
        if !is_kept {
            remove(object, path);
        }
    }
}

/// Whether one of the paths is this one, or leads on from it.
fn has_any_within(paths: &BTreeSet<FieldPath>, path: &[String]) -> bool {
    let mut from = paths.range(path.to_vec()..);
    from.next().is_some_and(|next| next.starts_with(path))
}

/// Whether the field is one by which the item around it is told apart: it goes with the item alone.
fn is_key_of_item(path: &[String]) -> bool {
    let [.., item, field] = path else {
        return false;
    };
    let id = item.strip_prefix("k:").zip(field.strip_prefix("f:"));
    id.is_some_and(|(id, field)| {
        let id: Map<String, Value> = serde_json::from_str(id).unwrap_or_default();
        id.contains_key(field)
    })
}

/// A field that another manager owns with another value.
struct Conflict<'a> {
    /// Place of the other manager's entry.
    entry: usize,
    path: &'a FieldPath,
}

/// All of them, field by field.
fn conflicts<'a>(
    current: &BTreeMap<FieldPath, &Value>,
    manager: &str,
    wanted: &'a [(FieldPath, Value)],
    entries: &[ManagedFieldsEntry],
) -> Vec<Conflict<'a>> {
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
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for conflict in conflicts {
        let owner = shown_owner(&entries[conflict.entry], old);
        let field = dotted(conflict.path);
        causes.push(json!({
            "reason": "FieldManagerConflict",
            "message": format!("conflict with {owner}"),
            "field": field,
        }));
        fields.entry(owner).or_default().push(field);
    }
    let message = match conflicts {
        [one] => {
            let owner = shown_owner(&entries[one.entry], old);
            let field = dotted(one.path);
            format!("Apply failed with 1 conflict: conflict with {owner}: {field}")
        }
        many => {
            let by_owner = fields.iter().map(|(owner, fields)| {
                format!("conflicts with {owner}:\n- {}", fields.join("\n- "))
            });
            let by_owner: Vec<String> = by_owner.collect();
            let count = many.len();
            format!(
                "Apply failed with {count} conflicts: {}",
                by_owner.join("\n")
            )
        }
    };
    StatusError::apply_conflict(message, &causes)
}

/// `"kubectl" with subresource "status" using apps/v1`
fn shown_owner(entry: &ManagedFieldsEntry, old: &Value) -> String {
    let mut owner = format!("{:?}", entry.manager);
    if !entry.subresource.is_empty() {
        owner.extend([" with subresource \"", &entry.subresource, "\""]);
    }
    if entry.operation == "Update" {
        owner.extend([" using ", old["apiVersion"].as_str().unwrap_or_default()]);
    }
    owner
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

/// Whether an apply changed nothing but the times of entries, and their order.
fn is_same_but_for_times(old: &Value, new: &Value) -> bool {
    let without_times = |object: &Value| {
        let mut bare = object.clone();
        let entries = bare.pointer_mut("/metadata/managedFields");
        if let Some(entries) = entries.and_then(Value::as_array_mut) {
            for entry in entries.iter_mut() {
                entry["time"] = Value::Null;
            }
            entries.sort_by_key(|it| (it["manager"].to_string(), it["operation"].to_string()));
        }
        bare
    };
    without_times(old) == without_times(new)
}
