//! Which object a write means: kind, namespace and name in body and path, and the revision and UID that it insists on.

use crate::object_key::NamespacedName;
use crate::served::kinds::ServedKind;
use crate::status::StatusError;
use crate::write::metadata::metadata;
use serde_json::Value;

/// Checks that body and path speak of the same kind and fills in what the body leaves out.
pub(super) fn check_identity(
    kind: &ServedKind,
    namespace: &str,
    name: Option<&str>,
    object: &mut Value,
) -> Result<(), StatusError> {
    let body_kind = object["kind"].as_str().unwrap_or_default();
    if !body_kind.is_empty() && body_kind != kind.kind {
        return Err(StatusError::bad_request(format!(
            "{body_kind} in the data does not match the expected kind {}",
            kind.kind
        )));
    }
    kind.to_storage(object);
    let fields = metadata(object)?;
    if kind.is_namespaced {
        let given = fields
            .get("namespace")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !given.is_empty() && !namespace.is_empty() && given != namespace {
            return Err(StatusError::bad_request(format!(
                "the namespace of the provided object does not match the namespace sent on the \
                 request ({given} is not {namespace})"
            )));
        }
        if given.is_empty() {
            let namespace = if namespace.is_empty() {
                "default"
            } else {
                namespace
            };
            fields.insert("namespace".to_owned(), namespace.into());
        }
    } else {
        fields.remove("namespace");
    }
    if let Some(name) = name {
        let given = fields
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if given.is_empty() {
            fields.insert("name".to_owned(), name.into());
        } else if given != name {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_preconditions(
    kind: &ServedKind,
    key: &NamespacedName,
    old: &Value,
    new: &Value,
) -> Result<(), StatusError> {
    let given = new["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    if !given.is_empty()
        && given != "0"
        && Some(given) != old["metadata"]["resourceVersion"].as_str()
    {
        return Err(StatusError::conflict(
            &kind.resource,
            &key.name,
            "the object has been modified; please apply your changes to the latest version and \
             try again",
        ));
    }
    let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
    let actual = old["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != actual {
        return Err(StatusError::conflict(
            &kind.resource,
            &key.name,
            &format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {actual}"
            ),
        ));
    }
    Ok(())
}
