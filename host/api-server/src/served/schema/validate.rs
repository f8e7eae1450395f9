//! Checks a value against its schema, in the words of the API server.
//!
//! Changes nothing: defaults and pruning come before it. Answers to `pkg/apiserver/validation` of
//! `k8s.io/apiextensions-apiserver`.

use serde_json::Value;

use super::{Combined, ListType, Schema, ValueType, cel};
use crate::quantity;
use crate::status::FieldError;

/// Validates a whole object; apiVersion, kind and metadata are the server's own.
pub(super) fn root(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    value(schema, object, old, "", &mut errors);
    errors
}

fn value(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    // What did not change is not held against the writer.
    if old == Some(value) {
        return;
    }
    let before = errors.len();
    if value.is_null() && schema.is_nullable {
        return;
    }
    if !check_type(schema, value, path, errors) {
        return;
    }
    check_enum(schema, value, path, errors);
    match value {
        Value::Object(fields) => object(schema, fields, old, path, errors),
        Value::Array(items) => array(schema, items, old, path, errors),
        Value::String(text) => string(schema, text, value, path, errors),
        Value::Number(_) => number(schema, value, path, errors),
        Value::Bool(_) | Value::Null => {}
    }
    combined(schema, value, path, errors);
    // Rules may assume what the schema promises, so they run only where it holds.
    if errors.len() == before {
        cel::run(schema, value, old, path, errors);
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let is_right = if schema.is_int_or_string {
        value.is_string() || value.is_i64() || value.is_u64()
    } else {
        match schema.kind {
            None => true,
            Some(ValueType::Object) => value.is_object(),
            Some(ValueType::Array) => value.is_array(),
            Some(ValueType::String) => value.is_string(),
            Some(ValueType::Integer) => {
                value.is_i64()
                    || value.is_u64()
                    || value
                        .as_f64()
                        .is_some_and(|n| n.fract().abs() < f64::EPSILON)
            }
            Some(ValueType::Number) => value.is_number(),
            Some(ValueType::Boolean) => value.is_boolean(),
        }
    };
    if !is_right {
        let given = type_name(value);
        let wanted = schema.kind.map_or("integer,string", ValueType::as_str);
        errors.push(FieldError {
            reason: "FieldValueTypeInvalid",
            field: path.to_owned(),
            message: format!(
                "Invalid value: {given:?}: {path} in body must be of type {wanted}: {given:?}"
            ),
        });
    }
    is_right
}

fn check_enum(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(allowed) = &schema.allowed else {
        return;
    };
    if !allowed.contains(value) {
        let texts: Vec<String> = allowed
            .iter()
            .map(|a| a.as_str().map_or_else(|| a.to_string(), str::to_owned))
            .collect();
        errors.push(FieldError::not_supported(path, value, &texts));
    }
}

fn object(
    schema: &Schema,
    fields: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    for name in &schema.required {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(below(path, name), ""));
        }
    }
    if schema.is_embedded {
        for name in ["apiVersion", "kind"] {
            let given = fields.get(name).and_then(Value::as_str);
            if given.is_none_or(str::is_empty) {
                errors.push(FieldError::required(below(path, name), "must not be empty"));
            }
        }
    }
    let count = fields.len() as u64;
    let bounds = schema.bounds();
    if let Some(most) = bounds.properties_max.filter(|most| count > *most) {
        errors.push(too_many(path, count, most, "properties"));
    }
    if let Some(least) = bounds.properties_min.filter(|least| count < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        errors.push(FieldError::invalid(path, &count.into(), &detail));
    }
    for (name, field) in fields {
        if path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let old = old.and_then(|o| o.get(name));
        if let Some(inner) = schema.field(name) {
            value(inner, field, old, &below(path, name), errors);
        }
    }
}

fn too_many(path: &str, count: u64, most: u64, what: &str) -> FieldError {
    FieldError {
        reason: "FieldValueTooMany",
        field: path.to_owned(),
        message: format!("Too many: {count}: must have at most {most} {what}"),
    }
}

fn array(
    schema: &Schema,
    items: &[Value],
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let count = items.len() as u64;
    if let Some(most) = schema.bounds().items_max.filter(|most| count > *most) {
        errors.push(too_many(path, count, most, "items"));
    }
    if let Some(least) = schema.bounds().items_min.filter(|least| count < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        errors.push(FieldError::invalid(path, &count.into(), &detail));
    }
    check_unique(schema, items, path, errors);
    let Some(inner) = schema.item() else {
        return;
    };
    let old_items = old.and_then(Value::as_array);
    for (at, item) in items.iter().enumerate() {
        let before = match (&schema.list_type, old_items) {
            (ListType::Map(keys), Some(old)) => old
                .iter()
                .find(|have| keys.iter().all(|key| have[key] == item[key])),
            // Other lists have no identity to compare by, but an item that was there is no news.
            (_, Some(old)) => old.iter().find(|have| *have == item),
            (_, None) => None,
        };
        value(inner, item, before, &format!("{path}[{at}]"), errors);
    }
}

fn check_unique(schema: &Schema, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let same = |a: &Value, b: &Value| match &schema.list_type {
        ListType::Map(keys) => keys.iter().all(|key| a[key] == b[key]),
        ListType::Set => a == b,
        ListType::Atomic => schema.has_unique_items && a == b,
    };
    for (at, item) in items.iter().enumerate() {
        if items[..at].iter().any(|earlier| same(earlier, item)) {
            let shown: Value = match &schema.list_type {
                ListType::Map(keys) => keys
                    .iter()
                    .map(|key| (key.clone(), item[key].clone()))
                    .collect(),
                ListType::Set | ListType::Atomic => item.clone(),
            };
            errors.push(FieldError {
                reason: "FieldValueDuplicate",
                field: format!("{path}[{at}]"),
                message: format!("Duplicate value: {shown}"),
            });
        }
    }
}

fn string(schema: &Schema, text: &str, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema.bounds().length_max.filter(|most| length > *most) {
        errors.push(FieldError {
            reason: "FieldValueTooLong",
            field: path.to_owned(),
            message: format!("Too long: may not be more than {most} bytes"),
        });
    }
    if let Some(least) = schema.bounds().length_min.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        errors.push(FieldError::invalid(path, value, &detail));
    }
    if let Some(pattern) = &schema.pattern
        && !pattern.is_match(text)
    {
        let detail = format!("{path} in body should match '{}'", pattern.as_str());
        errors.push(FieldError::invalid(path, value, &detail));
    }
    let is_well_formed = match schema.format.as_deref() {
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("quantity") => quantity::parse(value).is_some(),
        _ => true,
    };
    if !is_well_formed {
        let format = schema.format.as_deref().unwrap_or_default();
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        errors.push(FieldError::invalid(path, value, &detail));
    }
}

fn number(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(given) = value.as_f64() else { return };
    let bounds = schema.bounds();
    let shown = |bound: f64| {
        if bound.fract().abs() < f64::EPSILON {
            format!("{bound:.0}")
        } else {
            bound.to_string()
        }
    };
    if let Some(least) = bounds.minimum {
        let is_below = if bounds.is_minimum_exclusive {
            given <= least
        } else {
            given < least
        };
        if is_below {
            let word = if bounds.is_minimum_exclusive {
                ""
            } else {
                "or equal to "
            };
            let detail = format!(
                "{path} in body should be greater than {word}{}",
                shown(least)
            );
            errors.push(FieldError::invalid(path, value, &detail));
        }
    }
    if let Some(most) = bounds.maximum {
        let is_above = if bounds.is_maximum_exclusive {
            given >= most
        } else {
            given > most
        };
        if is_above {
            let word = if bounds.is_maximum_exclusive {
                ""
            } else {
                "or equal to "
            };
            let detail = format!("{path} in body should be less than {word}{}", shown(most));
            errors.push(FieldError::invalid(path, value, &detail));
        }
    }
    if let Some(step) = bounds.multiple_of
        && (given / step).fract().abs() > f64::EPSILON
    {
        let detail = format!("{path} in body should be a multiple of {}", shown(step));
        errors.push(FieldError::invalid(path, value, &detail));
    }
}

fn combined(schema: &Schema, given: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let failures = |part: &Schema| {
        let mut found = Vec::new();
        value(part, given, None, path, &mut found);
        found
    };
    let Some(combined) = schema.combined.as_deref() else {
        return;
    };
    let Combined {
        all_of,
        any_of,
        one_of,
        not,
    } = combined;
    for part in all_of {
        errors.extend(failures(part));
    }
    let passed = |parts: &[Schema]| {
        parts
            .iter()
            .filter(|part| failures(part).is_empty())
            .count()
    };
    if !any_of.is_empty() && passed(any_of) == 0 {
        let detail = format!("{path} in body must validate at least one schema (anyOf)");
        errors.push(FieldError::invalid(path, given, &detail));
    }
    if !one_of.is_empty() && passed(one_of) != 1 {
        let detail = format!("{path} in body must validate one and only one schema (oneOf)");
        errors.push(FieldError::invalid(path, given, &detail));
    }
    if not.as_ref().is_some_and(|part| failures(part).is_empty()) {
        let detail = format!("{path} in body must not validate the schema (not)");
        errors.push(FieldError::invalid(path, given, &detail));
    }
}
