//! The collector's own finalizers.

use serde_json::Value;

pub(crate) const FOREGROUND: &str = "foregroundDeletion";

pub(crate) const ORPHAN: &str = "orphan";

pub(crate) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let list = object["metadata"]["finalizers"].as_array();
    list.is_some_and(|list| list.iter().any(|f| f == finalizer))
}
