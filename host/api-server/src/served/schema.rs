//! Structural schemas of custom resources: pruning, defaulting, validation and CEL rules.
//!
//! A schema is compiled once, patterns and rules included. Answers to apiextensions-apiserver's `schema` packages.

mod cel;
mod compile;
mod default;
pub(crate) mod definition;
mod pattern;
mod prune;
pub(crate) mod unknown;
mod validate;

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

pub(crate) use self::compile::References;
use crate::served::json_path::JsonPathStep;
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
    Of(Arc<Schema>),
}

/// Fields by name, in its order. Most schemas have none or few, and there are thousands: a map would take room for
/// eleven at once.
#[derive(Debug, Clone, Default)]
struct Properties(Box<[(Box<str>, Arc<Schema>)]>);

impl Properties {
    fn get(&self, name: &str) -> Option<&Schema> {
        let at = self.0.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
        self.0.get(at).map(|(_, schema)| &**schema)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.0.iter().map(|(name, schema)| (&**name, &**schema))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Box<str>, Arc<Schema>)> for Properties {
    fn from_iter<T: IntoIterator<Item = (Box<str>, Arc<Schema>)>>(iter: T) -> Self {
        let mut fields: Vec<_> = iter.into_iter().collect();
        fields.sort_by(|(one, _), (other, _)| one.cmp(other));
        Self(fields.into_boxed_slice())
    }
}

/// Bounds of numbers, texts, lists and maps.
#[derive(Debug, Clone, Default, PartialEq)]
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

const UNBOUNDED: Bounds = Bounds {
    minimum: None,
    maximum: None,
    is_minimum_exclusive: false,
    is_maximum_exclusive: false,
    multiple_of: None,
    length_min: None,
    length_max: None,
    items_min: None,
    items_max: None,
    properties_min: None,
    properties_max: None,
};

/// What a value must be besides, in terms of other schemas.
#[derive(Debug, Clone, Default)]
struct Combined {
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Schema>,
}

/// A compiled schema. What few of them say is kept apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    kind: Option<ValueType>,
    properties: Properties,
    additional: Option<Additional>,
    items: Option<Arc<Schema>>,
    required: Vec<String>,
    allowed: Option<Vec<Value>>,
    pattern: Option<Regex>,
    bounds: Option<Box<Bounds>>,
    format: Option<Box<str>>,
    default: Option<Value>,
    is_nullable: bool,
    is_int_or_string: bool,
    is_embedded: bool,
    preserves_unknown: bool,
    has_unique_items: bool,
    list_type: ListType,
    is_map_atomic: bool,
    /// Whether it is part of itself, somewhere below.
    is_within_itself: bool,
    /// Whether an object here is one of the nearest schema around that is part of itself.
    repeats_outer: bool,
    rules: Vec<cel::CompiledRule>,
    combined: Option<Box<Combined>>,
}

impl Schema {
    /// Compiles the schema of a version.
    pub(crate) fn compile(source: &Value) -> Result<Self, String> {
        compile::schema(source, "", &mut compile::NoReferences)
    }

    /// Compiles a schema that may refer to others, which are shared.
    pub(crate) fn compile_shared(
        source: &Value,
        references: &mut dyn References,
    ) -> Result<Arc<Self>, String> {
        compile::shared(source, "", references)
    }

    /// Stands for the schema around that is part of itself; other values than objects may be allowed in its place.
    pub(crate) fn of_outer(is_object_always: bool) -> Self {
        Self {
            kind: is_object_always.then_some(ValueType::Object),
            additional: Some(Additional::Any),
            repeats_outer: true,
            ..Self::default()
        }
    }

    /// Says that the schema is part of itself.
    pub(crate) fn mark_within_itself(&mut self) {
        self.is_within_itself = true;
    }

    /// Says that fields of other names may be there.
    pub(crate) fn allow_other_fields(&mut self) {
        self.additional.get_or_insert(Additional::Any);
    }

    /// The schema of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Of(schema)) => Some(&**schema),
            Some(Additional::Any) | None => None,
        })
    }

    fn bounds(&self) -> &Bounds {
        self.bounds.as_deref().unwrap_or(&UNBOUNDED)
    }

    /// The schema of a list's items.
    pub(crate) fn item(&self) -> Option<&Self> {
        self.items.as_deref()
    }

    /// The keys by which a list's items are told apart, if it is such a list.
    pub(crate) fn list_keys(&self) -> Option<&[String]> {
        match &self.list_type {
            ListType::Map(keys) => Some(keys),
            ListType::Atomic | ListType::Set => None,
        }
    }

    /// Whether the list is a set.
    pub(crate) fn is_set(&self) -> bool {
        self.list_type == ListType::Set
    }

    /// Whether the value is owned as a whole.
    pub(crate) fn is_atomic(&self) -> bool {
        match self.kind {
            Some(ValueType::Array) => self.list_type == ListType::Atomic,
            _ => self.is_map_atomic,
        }
    }
}

/// A column of server-side tables.
#[derive(Debug, Clone)]
pub(crate) struct PrinterColumn {
    /// The column as the definition has it.
    pub(crate) definition: Value,
    /// JSONPath of the column, parsed.
    pub(crate) steps: Vec<JsonPathStep>,
}

/// Schema and columns of one version of a custom resource.
#[derive(Debug, Clone)]
pub(crate) struct CustomVersion {
    /// The schema as compiled.
    pub(crate) schema: Schema,
    /// The schema as written, as JSON: it is asked for by those who want to know what the server serves.
    pub(crate) source: Box<str>,
    /// Columns of server-side tables.
    pub(crate) columns: Vec<PrinterColumn>,
}

/// Prunes what the schema does not know and fills in its defaults.
pub(crate) fn prepare(schema: &Schema, object: &mut Value) {
    prune::root(schema, object);
    default::apply(schema, object);
}

/// What of the object breaks the schema or its rules. What equals its old state is not looked at again.
pub(crate) fn validate(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    validate::root(schema, object, old)
}
