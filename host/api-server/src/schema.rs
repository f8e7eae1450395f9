//! Structural schemas of custom resources: pruning, defaulting, validation and CEL rules.
//!
//! A schema is compiled once, patterns and rules included. Answers to apiextensions-apiserver's `schema` packages.

mod cel;
mod compile;
mod default;
pub(super) mod definition;
mod prune;
pub(super) mod unknown;
mod validate;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::json_path::JsonPathStep;
use crate::status::FieldError;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl ValueType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// Values under names that `properties` does not have, by `additionalProperties`.
#[derive(Debug, Clone)]
enum Additional {
    /// Any value under any name.
    Any,
    /// Values of this schema under any name.
    Of(Box<Schema>),
}

/// Bounds of numbers, texts, lists and maps.
#[derive(Debug, Clone, Default)]
struct Bounds {
    minimum: Option<f64>,
    maximum: Option<f64>,
    is_minimum_exclusive: bool,
    is_maximum_exclusive: bool,
    multiple_of: Option<f64>,
    length_min: Option<u64>,
    length_max: Option<u64>,
    items_min: Option<u64>,
    items_max: Option<u64>,
    properties_min: Option<u64>,
    properties_max: Option<u64>,
}

/// How a list's items are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// A compiled schema.
#[derive(Debug, Clone, Default)]
pub(super) struct Schema {
    kind: Option<ValueType>,
    properties: BTreeMap<String, Schema>,
    additional: Option<Additional>,
    items: Option<Box<Schema>>,
    required: Vec<String>,
    allowed: Option<Vec<Value>>,
    pattern: Option<Regex>,
    bounds: Bounds,
    format: Option<String>,
    default: Option<Value>,
    is_nullable: bool,
    is_int_or_string: bool,
    is_embedded: bool,
    preserves_unknown: bool,
    has_unique_items: bool,
    list_type: ListType,
    is_map_atomic: bool,
    rules: Vec<cel::CompiledRule>,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
}

impl Schema {
    /// Compiles the schema of a version.
    pub(super) fn compile(source: &Value) -> Result<Self, String> {
        compile::schema(source, "")
    }

    /// The schema of a field.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Of(schema)) => Some(schema),
            Some(Additional::Any) | None => None,
        })
    }

    /// The schema of a list's items.
    pub(super) fn item(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// The keys by which a list's items are told apart, if it is such a list.
    pub(super) fn list_keys(&self) -> Option<&[String]> {
        match &self.list_type {
            ListType::Map(keys) => Some(keys),
            ListType::Atomic | ListType::Set => None,
        }
    }

    /// Whether the list is a set.
    pub(super) fn is_set(&self) -> bool {
        self.list_type == ListType::Set
    }

    /// Whether the value is owned as a whole.
    pub(super) fn is_atomic(&self) -> bool {
        match self.kind {
            Some(ValueType::Array) => self.list_type == ListType::Atomic,
            _ => self.is_map_atomic,
        }
    }
}

/// A column of server-side tables.
#[derive(Debug, Clone)]
pub(super) struct PrinterColumn {
    /// The column as the definition has it.
    pub(super) definition: Value,
    /// JSONPath of the column, parsed.
    pub(super) steps: Vec<JsonPathStep>,
}

/// Schema and columns of one version of a custom resource.
#[derive(Debug, Clone)]
pub(super) struct CustomVersion {
    /// The schema as compiled.
    pub(super) schema: Schema,
    /// The schema as written.
    pub(super) source: Value,
    /// Columns of server-side tables.
    pub(super) columns: Vec<PrinterColumn>,
}

/// Prunes what the schema does not know and fills in its defaults.
pub(super) fn prepare(schema: &Schema, object: &mut Value) {
    prune::root(schema, object);
    default::apply(schema, object);
}

/// What of the object breaks the schema or its rules. What equals its old state is not looked at again.
pub(super) fn validate(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate::root(schema, object, old)
}
