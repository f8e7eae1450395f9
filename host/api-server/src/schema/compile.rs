//! From `openAPIV3Schema` to a compiled schema; refuses what could not be evaluated later.

use regex::Regex;
use serde_json::Value;

use super::{Additional, Bounds, ListType, Schema, ValueType, cel};

/// Compiles a schema; `path` tells where a refusal is.
pub(super) fn schema(source: &Value, path: &str) -> Result<Schema, String> {
    let flag = |name: &str| source[name].as_bool() == Some(true);
    let mut compiled = Schema {
        kind: kind(source, path)?,
        additional: additional(source, path)?,
        required: texts(&source["required"]),
        allowed: source["enum"].as_array().cloned(),
        bounds: bounds(source),
        format: source["format"].as_str().map(str::to_owned),
        default: source.get("default").cloned(),
        is_nullable: flag("nullable"),
        is_int_or_string: flag("x-kubernetes-int-or-string"),
        is_embedded: flag("x-kubernetes-embedded-resource"),
        preserves_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        has_unique_items: flag("uniqueItems"),
        is_map_atomic: source["x-kubernetes-map-type"].as_str() == Some("atomic"),
        list_type: match source["x-kubernetes-list-type"].as_str() {
            Some("map") => ListType::Map(texts(&source["x-kubernetes-list-map-keys"])),
            Some("set") => ListType::Set,
            _ => ListType::Atomic,
        },
        ..Schema::default()
    };
    for (name, property) in source["properties"].as_object().into_iter().flatten() {
        let property = schema(property, &format!("{path}.{name}"))?;
        compiled.properties.insert(name.clone(), property);
    }
    if source["items"].is_object() {
        compiled.items = Some(Box::new(schema(&source["items"], &format!("{path}[*]"))?));
    }
    if let Some(pattern) = source["pattern"].as_str() {
        let regex = Regex::new(pattern).map_err(|e| format!("{path}.pattern: {e}"))?;
        compiled.pattern = Some(regex);
    }
    for rule in source["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        compiled
            .rules
            .push(cel::CompiledRule::compile(rule).map_err(|e| format!("{path}: {e}"))?);
    }
    for (name, list) in [
        ("allOf", &mut compiled.all_of),
        ("anyOf", &mut compiled.any_of),
        ("oneOf", &mut compiled.one_of),
    ] {
        for part in source[name].as_array().into_iter().flatten() {
            list.push(schema(part, path)?);
        }
    }
    if source["not"].is_object() {
        compiled.not = Some(Box::new(schema(&source["not"], path)?));
    }
    Ok(compiled)
}

fn kind(source: &Value, path: &str) -> Result<Option<ValueType>, String> {
    Ok(Some(match source["type"].as_str() {
        None | Some("") => return Ok(None),
        Some("object") => ValueType::Object,
        Some("array") => ValueType::Array,
        Some("string") => ValueType::String,
        Some("integer") => ValueType::Integer,
        Some("number") => ValueType::Number,
        Some("boolean") => ValueType::Boolean,
        Some(other) => return Err(format!("{path}.type: unknown type {other:?}")),
    }))
}

fn additional(source: &Value, path: &str) -> Result<Option<Additional>, String> {
    Ok(match &source["additionalProperties"] {
        Value::Bool(true) => Some(Additional::Any),
        part @ Value::Object(_) => Some(Additional::Of(Box::new(schema(
            part,
            &format!("{path}[*]"),
        )?))),
        _ => None,
    })
}

fn bounds(source: &Value) -> Bounds {
    let flag = |name: &str| source[name].as_bool() == Some(true);
    Bounds {
        minimum: source["minimum"].as_f64(),
        maximum: source["maximum"].as_f64(),
        is_minimum_exclusive: flag("exclusiveMinimum"),
        is_maximum_exclusive: flag("exclusiveMaximum"),
        multiple_of: source["multipleOf"].as_f64(),
        length_min: source["minLength"].as_u64(),
        length_max: source["maxLength"].as_u64(),
        items_min: source["minItems"].as_u64(),
        items_max: source["maxItems"].as_u64(),
        properties_min: source["minProperties"].as_u64(),
        properties_max: source["maxProperties"].as_u64(),
    }
}

/// The strings of a list.
pub(super) fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
