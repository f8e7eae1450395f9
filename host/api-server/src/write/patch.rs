//! Patches: JSON Patch, merge patch, strategic merge patch and server-side apply, on any kind.
//!
//! Never stores by itself: what a patch comes to is an update, and is admitted as one.

pub(crate) mod strategic;

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::object_key::NamespacedName;
use crate::served::kinds::ServedKind;
use crate::served::schema::unknown;
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::write::apply;
use crate::write::options::{ObjectPart, WriteOptions};

/// A change to an object.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON Patch: the operations of RFC 6902.
    Json(Value),
    /// JSON Merge Patch, RFC 7386.
    Merge(Value),
    /// Kubernetes' merge that knows the keys of lists.
    Strategic(Value),
    /// Server-side apply of a whole intent.
    Apply {
        /// The fields the manager wants.
        intent: Value,
        /// Take fields over from other managers.
        is_forced: bool,
    },
}

/// Applies a patch; only an apply may create the object.
pub(crate) fn run(
    store: &mut Store,
    kind: &Arc<ServedKind>,
    key: &NamespacedName,
    patch: &Patch,
    options: &WriteOptions,
) -> Result<Arc<Value>, StatusError> {
    if let Patch::Apply { intent, is_forced } = patch {
        let options = &WriteOptions {
            takes_over: *is_forced,
            ..options.clone()
        };
        return apply::run(store, kind, key, intent, options);
    }
    let old = store
        .get_to_write(&kind.resource, key)
        .ok_or_else(|| StatusError::not_found(&kind.resource, &key.name))?;
    let object = outcome(kind, key, &old, patch)?;
    if object["metadata"]["name"] != old["metadata"]["name"] {
        let error = FieldError::invalid(
            "metadata.name",
            &object["metadata"]["name"],
            "field is immutable",
        );
        return Err(StatusError::invalid(
            &kind.group,
            &kind.kind,
            &key.name,
            &[error],
        ));
    }
    if options.part == ObjectPart::Whole {
        return Err(StatusError::bad_request(
            "patches mean either the object or its status",
        ));
    }
    store.update(kind, key, object, options)
}

/// What the patch makes of an object.
fn outcome(
    kind: &ServedKind,
    key: &NamespacedName,
    old: &Value,
    patch: &Patch,
) -> Result<Value, StatusError> {
    let mut object = old.clone();
    match patch {
        Patch::Json(operations) => apply_json(kind, key, &mut object, operations)?,
        Patch::Merge(change) => merge(&mut object, change),
        Patch::Strategic(_) if kind.is_custom() => {
            return Err(StatusError::unsupported_media_type(
                "application/strategic-merge-patch+json is not supported for custom resources",
            ));
        }
        Patch::Strategic(change) => strategic::apply(&mut object, change)?,
        Patch::Apply { .. } => {}
    }
    if !object["metadata"].is_object() {
        return Err(refused(&object, "metadata must be an object"));
    }
    match patch {
        // What other patches put in was looked at before; operations say nothing of types.
        Patch::Json(_) => {
            if let Some(problem) = unknown::mistyped(kind, &object) {
                return Err(refused(&object, &problem));
            }
        }
        // Without a revision of its own a patch is applied to whatever is there.
        Patch::Merge(change) | Patch::Strategic(change) => {
            if !change["metadata"]["resourceVersion"].is_string() {
                object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            }
        }
        Patch::Apply { .. } => {}
    }
    Ok(object)
}

/// JSON Merge Patch, RFC 7386: null removes, objects merge, all else replaces.
fn merge(target: &mut Value, change: &Value) {
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
            merge(map.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The refusal of a patch from which no object of the kind comes.
pub(crate) fn refused(given: &Value, problem: &str) -> StatusError {
    StatusError::invalid("", "", "", &[FieldError::invalid("patch", given, problem)])
}

fn apply_json(
    kind: &ServedKind,
    key: &NamespacedName,
    object: &mut Value,
    operations: &Value,
) -> Result<(), StatusError> {
    let operations: json_patch::Patch = serde_json::from_value(operations.clone())
        .map_err(|e| StatusError::bad_request(format!("error decoding patch: {e}")))?;
    json_patch::patch(object, &operations).map_err(|e| {
        let error = FieldError {
            reason: "FieldValueInvalid",
            field: String::new(),
            message: format!("the server rejected our request due to an error in our request: {e}"),
        };
        StatusError::invalid(&kind.group, &kind.kind, &key.name, &[error])
    })
}
