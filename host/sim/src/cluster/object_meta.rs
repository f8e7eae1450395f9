//! Reads metadata of an object: who it is, who controls it, whether it is being deleted.

use jiff::Timestamp;
use serde_json::Value;

/// A controlling owner reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControllerRef {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The controller of an object.
pub(crate) fn controller_of(object: &Value) -> Option<ControllerRef> {
    let references = object["metadata"]["ownerReferences"].as_array()?;
    let reference = references
        .iter()
        .find(|reference| reference["controller"] == true)?;
    let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    Some(ControllerRef {
        kind: text("kind"),
        name: text("name"),
        uid: text("uid"),
    })
}

/// Whether the object's controller is the one with this UID.
pub(crate) fn is_controlled_by(object: &Value, uid: &str) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.is_some_and(|references| {
        let controller = references.iter().find(|it| it["controller"] == true);
        controller.is_some_and(|it| it["uid"] == uid)
    })
}

/// The UID of an object.
pub(crate) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

/// A time that a field says.
pub(crate) fn time(field: &Value) -> Option<Timestamp> {
    field.as_str()?.parse().ok()
}

/// Since when the object is being deleted.
pub(crate) fn deletion_time(object: &Value) -> Option<Timestamp> {
    time(&object["metadata"]["deletionTimestamp"])
}

/// Whether someone deletes the object.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}
