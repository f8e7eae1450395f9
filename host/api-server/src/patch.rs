//! Patches: JSON Patch, merge patch, strategic merge patch and server-side apply, on any kind.
//!
//! Never stores by itself: what a patch comes to is an update, and is admitted as one.

pub(super) mod merge;
pub(super) mod strategic;

use std::sync::Arc;

use serde_json::Value;

use crate::apply;
use crate::kinds::ServedKind;
use crate::object_key::NamespacedName;
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::write_options::{ObjectPart, WriteOptions};

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
pub(super) fn run(
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
    let mut object = (*old).clone();
    let given_revision = match patch {
        Patch::Json(operations) => {
            apply_json(kind, key, &mut object, operations)?;
            None
        }
        Patch::Merge(change) => {
            merge::apply(&mut object, change);
            change["metadata"]["resourceVersion"]
                .as_str()
                .map(str::to_owned)
        }
        Patch::Strategic(change) => {
            if kind.is_custom() {
                return Err(StatusError::unsupported_media_type(
                    "application/strategic-merge-patch+json is not supported for custom resources",
                ));
            }
            strategic::apply(&mut object, change)?;
            change["metadata"]["resourceVersion"]
                .as_str()
                .map(str::to_owned)
        }
        Patch::Apply { .. } => None,
    };
    if given_revision.is_none() && !matches!(patch, Patch::Json(_)) {
        // Without a revision of its own a patch is applied to whatever is there.
        object["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    }
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
    let options = WriteOptions {
        part: options.part,
        ..options.clone()
    };
    if options.part == ObjectPart::Whole {
        return Err(StatusError::bad_request(
            "patches mean either the object or its status",
        ));
    }
    store.update(kind, key, object, &options)
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
