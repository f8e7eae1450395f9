//! Fields that take one of a few values.

use crate::status::FieldError;
use serde_json::Value;

pub(super) fn validate_choice(
    object: &Value,
    field: &str,
    allowed: &[&str],
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let value = &object[field];
    if value.as_str().is_some_and(|v| !allowed.contains(&v)) {
        let mut allowed: Vec<String> = allowed.iter().map(|&a| a.to_owned()).collect();
        allowed.sort();
        errors.push(FieldError::not_supported(
            format!("{path}.{field}"),
            value,
            &allowed,
        ));
    }
}
