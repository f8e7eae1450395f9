//! What unit tests make objects of: one as most cases have it, and what else a case says of it.

use serde_json::Value;

/// The object with further values, by JSON pointer.
pub(crate) fn with_values(mut object: Value, extra: &Value) -> Value {
    for (path, value) in extra.as_object().unwrap() {
        let (parent, name) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value.clone();
    }
    object
}
