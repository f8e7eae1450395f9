//! From `openAPIV3Schema` to a compiled schema; refuses what could not be evaluated later.

use std::sync::Arc;

use serde_json::Value;

use super::pattern::pattern;
use super::{Additional, Bounds, Combined, ListType, Schema, UNBOUNDED, ValueType, cel};

/// Knows the schemas that others refer to.
pub(crate) trait References {
    /// The schema that stands for this one, if it is a reference.
    fn resolve(&mut self, source: &Value) -> Option<Result<Arc<Schema>, String>>;
}

/// Definitions of custom resources stand for themselves.
pub(super) struct NoReferences;

impl References for NoReferences {
    fn resolve(&mut self, _source: &Value) -> Option<Result<Arc<Schema>, String>> {
        None
    }
}

/// Compiles a schema below another one, or takes the one it refers to.
pub(super) fn shared(
    source: &Value,
    path: &str,
    references: &mut dyn References,
) -> Result<Arc<Schema>, String> {
    match references.resolve(source) {
        Some(resolved) => resolved,
        None => schema(source, path, references).map(Arc::new),
    }
}

/// Compiles a schema; `path` tells where a refusal is.
pub(super) fn schema(
    source: &Value,
    path: &str,
    references: &mut dyn References,
) -> Result<Schema, String> {
    let flag = |name: &str| source[name].as_bool() == Some(true);
    let mut compiled = Schema {
        kind: kind(source, path)?,
        additional: additional(source, path, references)?,
        required: texts(&source["required"]),
        allowed: source["enum"].as_array().cloned(),
        bounds: bounds(source),
        format: source["format"].as_str().map(Box::from),
        default: source.get("default").filter(|it| !it.is_null()).cloned(),
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
    let properties = source["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(name, property)| {
        let property = shared(property, &format!("{path}.{name}"), references)?;
        Ok((Box::from(name.as_str()), property))
    });
    compiled.properties = properties.collect::<Result<_, String>>()?;
    if source["items"].is_object() {
        let items = shared(&source["items"], &format!("{path}[*]"), references)?;
        compiled.items = Some(items);
    }
    if let Some(text) = source["pattern"].as_str() {
        let regex = pattern(text).map_err(|e| format!("{path}.pattern: {e}"))?;
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
    compiled.combined = combined(source, path, references)?;
    Ok(compiled)
}

fn combined(
    source: &Value,
    path: &str,
    references: &mut dyn References,
) -> Result<Option<Box<Combined>>, String> {
    let mut combined = Combined::default();
    for (name, list) in [
        ("allOf", &mut combined.all_of),
        ("anyOf", &mut combined.any_of),
        ("oneOf", &mut combined.one_of),
    ] {
        for part in source[name].as_array().into_iter().flatten() {
            list.push(schema(part, path, references)?);
        }
    }
    if source["not"].is_object() {
        combined.not = Some(schema(&source["not"], path, references)?);
    }
    let Combined {
        all_of,
        any_of,
        one_of,
        not,
    } = &combined;
    let is_empty = all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && not.is_none();
    Ok((!is_empty).then(|| Box::new(combined)))
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

fn additional(
    source: &Value,
    path: &str,
    references: &mut dyn References,
) -> Result<Option<Additional>, String> {
    Ok(match &source["additionalProperties"] {
        Value::Bool(true) => Some(Additional::Any),
        part @ Value::Object(_) => {
            let schema = shared(part, &format!("{path}[*]"), references)?;
            Some(Additional::Of(schema))
        }
        _ => None,
    })
}

fn bounds(source: &Value) -> Option<Box<Bounds>> {
    let flag = |name: &str| source[name].as_bool() == Some(true);
    let bounds = Bounds {
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
    };
    (bounds != UNBOUNDED).then(|| Box::new(bounds))
}

/// The strings of a list.
pub(super) fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
