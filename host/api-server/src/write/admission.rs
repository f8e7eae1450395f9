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

/// Prunes, defaults and validates a new object.
pub(crate) fn on_create(
    store: &Store,
    kind: &Arc<ServedKind>,
    object: &mut Value,
) -> Result<(), StatusError> {
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
    check_definition(kind, object)
}

/// What cannot be served is not stored either.
fn check_definition(kind: &ServedKind, object: &Value) -> Result<(), StatusError> {
    if kind.resource == Resource::CUSTOM_RESOURCE_DEFINITIONS {
        definition::check(object)?;
    }
    Ok(())
}

/// Prunes, defaults and validates a changed object against its old state.
pub(crate) fn on_update(
    store: &Store,
    kind: &Arc<ServedKind>,
    old: &Value,
    object: &mut Value,
    part: ObjectPart,
) -> Result<(), StatusError> {
    if part == ObjectPart::Whole {
        return Ok(());
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
        builtin::prepare_update(store, kind, old, object);
        errors.extend(builtin::validate_update(kind, old, object));
    } else if part == ObjectPart::Status {
        errors.extend(builtin::validate_status_update(kind, old, object));
    }
    refuse(kind, object, &errors)?;
    match part {
        ObjectPart::Main => check_definition(kind, object),
        ObjectPart::Status | ObjectPart::Whole => Ok(()),
    }
}

/// The server's side effects of a stored write.
pub(crate) fn after_write(
    store: &mut Store,
    kind: &ServedKind,
    stored: &Value,
) -> Result<(), StatusError> {
    if kind.resource == Resource::CUSTOM_RESOURCE_DEFINITIONS {
        definition::register(store, stored)?;
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
