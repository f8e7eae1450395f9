//! The metadata that the server owns: clients may send it, and never change it.

use crate::status::StatusError;
use serde_json::{Map, Value, json};

/// The metadata map of an object, made if absent.
pub(super) fn metadata(object: &mut Value) -> Result<&mut Map<String, Value>, StatusError> {
    let fields = object
        .as_object_mut()
        .ok_or_else(|| StatusError::bad_request("the object provided is not a JSON object"))?;
    let entry = fields.entry("metadata").or_insert_with(|| json!({}));
    if entry.is_null() {
        *entry = json!({});
    }
    entry.as_object_mut().ok_or_else(|| {
        StatusError::bad_request("metadata of the object provided is not a JSON object")
    })
}

/// Copies what clients may not change from the old metadata.
pub(super) fn keep_server_metadata(old: &Value, new: &mut Value) -> Result<(), StatusError> {
    let had_managed_fields = old["metadata"].get("managedFields").cloned();
    let fields = metadata(new)?;
    for owned in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ] {
        match old["metadata"].get(owned) {
            Some(value) => fields.insert(owned.to_owned(), value.clone()),
            None => fields.remove(owned),
        };
    }
    fields.remove("selfLink");
    // A client that leaves managedFields out keeps them; one that sends the empty list clears them.
    if !fields.contains_key("managedFields")
        && let Some(kept) = had_managed_fields
    {
        fields.insert("managedFields".to_owned(), kept);
    }
    for empty in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let is_blank = match fields.get(empty) {
            Some(Value::Null) => true,
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            _ => false,
        };
        if is_blank {
            fields.remove(empty);
        }
    }
    Ok(())
}
