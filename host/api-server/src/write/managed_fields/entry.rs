//! One manager's entry, and the entries of an object.

use crate::timestamp::time_text;
use crate::write::managed_fields::fields_v1::{FieldPath, from_fields, to_fields};
use crate::write::options::ObjectPart;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Fields that one manager owns by one operation.
#[derive(Debug, Clone)]
pub(crate) struct ManagedFieldsEntry {
    pub(crate) manager: String,
    /// Operation by which it owns them, `Apply` or `Update`.
    pub(crate) operation: String,
    /// Subresource of the writes: empty, or `status`.
    pub(crate) subresource: String,
    time: Value,
    pub(crate) paths: BTreeSet<FieldPath>,
}

impl ManagedFieldsEntry {
    pub(crate) fn new(manager: &str, operation: &str, part: ObjectPart, now: Timestamp) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: operation.to_owned(),
            subresource: if part == ObjectPart::Status {
                "status".to_owned()
            } else {
                String::new()
            },
            time: time_text(now).into(),
            paths: BTreeSet::new(),
        }
    }

    /// Whether two entries are of one manager in one role.
    pub(crate) fn is_same_role(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
    }
}

/// The entries of an object.
pub(crate) fn read(object: &Value) -> Vec<ManagedFieldsEntry> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .map(|entry| ManagedFieldsEntry {
            manager: text(&entry["manager"]),
            operation: text(&entry["operation"]),
            subresource: text(&entry["subresource"]),
            time: entry["time"].clone(),
            paths: from_fields(&entry["fieldsV1"]),
        })
        .collect()
}

/// Writes the entries into an object; managers that own nothing are dropped.
pub(crate) fn write(object: &mut Value, entries: &[ManagedFieldsEntry]) {
    let api_version = object["apiVersion"].clone();
    let list: Vec<Value> = entries
        .iter()
        .filter(|entry| !entry.paths.is_empty())
        .map(|entry| {
            let mut value = json!({
                "manager": entry.manager, "operation": entry.operation,
                "apiVersion": api_version, "time": entry.time,
                "fieldsType": "FieldsV1", "fieldsV1": to_fields(&entry.paths),
            });
            if !entry.subresource.is_empty() {
                value["subresource"] = entry.subresource.as_str().into();
            }
            value
        })
        .collect();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    if list.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), list.into());
    }
}
