//! Admission of an object between the request and the store: defaults, validation, and the server's own side effects
//! such as serving a new kind once its definition is stored.

use std::sync::Arc;

use serde_json::Value;

use crate::builtin;
use crate::resource::Resource;
use crate::served::kinds::ServedKind;
use crate::served::schema::{self, definition};
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::write::options::ObjectPart;

fn refuse(kind: &ServedKind, object: &Value, errors: &[FieldError]) -> Result<(), StatusError> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(StatusError::invalid(&kind.group, &kind.kind, name, errors))
}

/// Prunes, defaults and validates a new object. Answers the kind that is to be served once it is stored, if it defines
/// one.
pub(crate) fn on_create(
    store: &Store,
    kind: &Arc<ServedKind>,
    object: &mut Value,
) -> Result<Option<ServedKind>, StatusError> {
    let mut errors = builtin::metadata::validate(kind, object);
    if let Some(version) = kind.stored_custom() {
        if kind.has_status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        schema::prepare(&version.schema, object);
        errors.extend(schema::validate(&version.schema, object, None));
    } else {
        builtin::prepare_create(store, kind, object)?;
        errors.extend(builtin::validate_create(kind, object));
    }
    refuse(kind, object, &errors)?;
    defined_kind(kind, object)
}

/// What cannot be served is not stored either.
fn defined_kind(kind: &ServedKind, object: &Value) -> Result<Option<ServedKind>, StatusError> {
    let is_definition = kind.resource == Resource::CUSTOM_RESOURCE_DEFINITIONS;
    is_definition
        .then(|| definition::compile(object))
        .transpose()
}

/// Prunes, defaults and validates a changed object against its old state. Answers as `on_create` does.
pub(crate) fn on_update(
    kind: &Arc<ServedKind>,
    old: &Value,
    object: &mut Value,
    part: ObjectPart,
) -> Result<Option<ServedKind>, StatusError> {
    if part == ObjectPart::Whole {
        return Ok(None);
    }
    let mut errors = Vec::new();
    if old["metadata"] != object["metadata"] {
        errors.extend(builtin::metadata::validate(kind, object));
        errors.extend(builtin::metadata::validate_update(old, object));
    }
    if let Some(version) = kind.stored_custom() {
        schema::prepare(&version.schema, object);
        errors.extend(schema::validate(&version.schema, object, Some(old)));
    } else if part == ObjectPart::Main {
        builtin::prepare_update(kind, old, object);
        errors.extend(builtin::validate_update(kind, old, object));
    } else if part == ObjectPart::Status {
        errors.extend(builtin::validate_status_update(kind, old, object));
    }
    refuse(kind, object, &errors)?;
    match part {
        ObjectPart::Main => defined_kind(kind, object),
        ObjectPart::Status | ObjectPart::Whole => Ok(None),
    }
}

/// The server's side effects of a stored write; `defined` is the kind that its admission found, if it looked.
pub(crate) fn after_write(
    store: &mut Store,
    kind: &ServedKind,
    stored: &Value,
    defined: Option<ServedKind>,
) -> Result<(), StatusError> {
    if kind.resource == Resource::CUSTOM_RESOURCE_DEFINITIONS {
        let defined = defined.map_or_else(|| definition::compile(stored), Ok)?;
        definition::register(store, stored, defined);
    } else if kind.resource == Resource::NAMESPACES {
        builtin::after_namespace(store, stored);
    }
    Ok(())
}

/// The server's side effects of a removal.
pub(crate) fn after_removal(store: &mut Store, resource: &Resource, gone: &Value) {
    if *resource == Resource::CUSTOM_RESOURCE_DEFINITIONS {
        definition::unregister(store, gone);
    }
}
