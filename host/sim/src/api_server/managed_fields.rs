//! Who set which field, kept small: only writers that name themselves are recorded.

use jiff::Timestamp;
use serde_json::Value;

use super::kinds::Kind;
use super::write::WriteOptions;

/// Records the fields of a new object.
pub(super) fn after_create(_kind: &Kind, _object: &mut Value, _options: &WriteOptions, _now: Timestamp) {}

/// Records the fields an update changed.
pub(super) fn after_update(_old: &Value, _object: &mut Value, _options: &WriteOptions, _now: Timestamp) {}
