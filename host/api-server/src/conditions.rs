//! Conditions that objects have in their status.

use serde_json::Value;

/// The condition of a type, if the object has it.
pub(crate) fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == condition_type)
}

/// Whether the object has a condition of the type, and it holds.
pub(crate) fn is_true(object: &Value, condition_type: &str) -> bool {
    condition(object, condition_type).is_some_and(|it| it["status"] == "True")
}
