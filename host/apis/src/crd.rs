//! CustomResourceDefinitions of every kind, made from the Rust types, and their YAML.
//!
//! Fields, defaults and bounds come from the types; what one field demands of another stands in the table
//! [`rules`]. Never write a definition by hand. Answers to Karpenter's `pkg/apis/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use serde_json::{Map, Value, json};

use crate::schema::QUANTITY_PATTERN;
use crate::{CapacityBuffer, Ec2NodeClass, NodeClaim, NodeOverlay, NodePool};

mod rules;
#[cfg(test)]
mod tests;

use kube_core::CustomResourceExt;
use rules::rule::ValidationRule;

/// A definition could not be made: a mistake in this crate, which its tests find.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// A rule's path does not lead to a schema.
    #[error("{kind}: no schema at {path}")]
    Path {
        /// Kind of the definition.
        kind: String,
        /// Path of the rule.
        path: &'static str,
    },
    /// The schema is not what the API knows.
    #[error("schema: {0}")]
    Schema(#[from] serde_json::Error),
    /// The text could not be written.
    #[error("yaml: {0}")]
    Yaml(String),
}

/// Every definition, by file name.
#[expect(
    clippy::expect_used,
    reason = "types and rules are constant: a mistake in them fails every test"
)]
pub fn all() -> Vec<CustomResourceDefinition> {
    [
        finish(CapacityBuffer::crd(), &rules::capacity_buffer()),
        finish(
            Ec2NodeClass::crd(),
            &rules::ec2_node_class::ec2_node_class(),
        ),
        finish(NodeClaim::crd(), &rules::node_claim()),
        finish(NodeOverlay::crd(), &rules::node_overlay()),
        finish(NodePool::crd(), &rules::node_pool()),
    ]
    .into_iter()
    .map(|crd| crd.expect("every rule's path leads to a schema"))
    .collect()
}

/// Name of a definition's file, as controller-gen names it.
pub fn file_name(crd: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", crd.spec.group, crd.spec.names.plural)
}

/// One definition as a YAML document.
pub fn yaml(crd: &CustomResourceDefinition) -> Result<String, CrdError> {
    let value = whole_numbers(serde_json::to_value(crd)?);
    let text =
        serde_saphyr::to_string(&value).map_err(|error| CrdError::Yaml(error.to_string()))?;
    Ok(format!(
        "---\n{}\n",
        text.trim_start_matches("---\n").trim_end()
    ))
}

/// Makes the derived schema structural and adds the rules.
fn finish(
    mut crd: CustomResourceDefinition,
    rules: &[ValidationRule],
) -> Result<CustomResourceDefinition, CrdError> {
    let kind = crd.spec.names.kind.clone();
    crd.spec.names.list_kind = Some(format!("{kind}List"));
    for validation in crd
        .spec
        .versions
        .iter_mut()
        .filter_map(|version| version.schema.as_mut())
    {
        let mut schema = serde_json::to_value(&validation.open_api_v3_schema)?;
        tidy(&mut schema);
        add_object_fields(&mut schema);
        for rule in rules {
            let target = at_path(&mut schema, rule.path).ok_or_else(|| CrdError::Path {
                kind: kind.clone(),
                path: rule.path,
            })?;
            let list = target
                .entry("x-kubernetes-validations")
                .or_insert_with(|| json!([]));
            if let Value::Array(list) = list {
                list.push(json!({"message": rule.message, "rule": rule.rule}));
            }
        }
        validation.open_api_v3_schema = Some(serde_json::from_value::<JSONSchemaProps>(schema)?);
    }
    Ok(crd)
}

/// Takes out what Rust's optional types leave behind, and gives every quantity its full schema.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    object.remove("nullable");
    object.remove("title");
    if object.get("format").is_some_and(|format| format == "") {
        object.remove("format");
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(words)) = object.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if object.contains_key("x-kubernetes-int-or-string") {
        object.insert(
            "anyOf".to_owned(),
            json!([{"type": "integer"}, {"type": "string"}]),
        );
        object.insert("pattern".to_owned(), QUANTITY_PATTERN.into());
        return;
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(keyword) {
            tidy(inner);
        }
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
}

/// The fields every object has, so that `kubectl explain` shows them.
fn add_object_fields(schema: &mut Value) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let field = |description: &str| json!({"type": "string", "description": description});
    properties.insert(
        "apiVersion".to_owned(),
        field("Group and version of the object's schema."),
    );
    properties.insert("kind".to_owned(), field("Kind of the object."));
    properties.insert("metadata".to_owned(), json!({"type": "object"}));
}

/// The schema at a path such as `spec.requirements[].key`.
fn at_path<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    let mut schema = schema;
    for step in path.split('.') {
        let (name, is_list) = match step.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (step, false),
        };
        schema = schema.get_mut("properties")?.get_mut(name)?;
        if is_list {
            schema = schema.get_mut("items")?;
        }
    }
    schema.as_object_mut()
}

/// Bounds are floating-point in the API's types; written out they should look like the integers they are.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let float = number
                .as_f64()
                .filter(|f| f.fract() == 0.0 && !number.is_i64() && !number.is_u64());
            float
                .and_then(|f| format!("{f:.0}").parse::<i64>().ok())
                .map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| (name, whole_numbers(field)))
            .collect(),
        scalar @ (Value::Null | Value::Bool(_) | Value::String(_)) => scalar,
    }
}
