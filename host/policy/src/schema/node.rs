//! A schema as it was read: what a value must be, part by part.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::rule::pattern::Pattern;

/// A schema within a schema.
#[derive(Debug, Clone)]
pub(super) enum SchemaNode {
    /// `true`, or nothing said.
    Anything,
    /// `false`.
    Nothing,
    Shape(Box<ValueSchema>),
}

/// Keywords of a schema for one value.
#[derive(Debug, Clone, Default)]
pub(super) struct ValueSchema {
    /// None means any.
    pub(super) types: Vec<SchemaType>,
    pub(super) properties: BTreeMap<String, SchemaNode>,
    pub(super) required: Vec<String>,
    /// Schema of further keys, from `additionalProperties`.
    pub(super) others: Others,
    pub(super) items: Option<SchemaNode>,
    pub(super) one_of: Option<Vec<Value>>,
    pub(super) least: Bound,
    pub(super) most: Bound,
    pub(super) length: CountRange,
    pub(super) count: CountRange,
    pub(super) pattern: Option<(String, Pattern)>,
    pub(super) description: String,
    pub(super) default: Option<Value>,
}

/// How many there may be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CountRange {
    pub(super) least: Option<u64>,
    pub(super) most: Option<u64>,
}

/// Values that may stand under keys that `properties` does not name.
#[derive(Debug, Clone, Default)]
pub(super) enum Others {
    #[default]
    Anything,
    Nothing,
    Each(SchemaNode),
}

/// An end of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Bound {
    #[default]
    None,
    Inclusive(f64),
    Exclusive(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl SchemaType {
    pub(super) const ALL: [(&str, Self); 7] = [
        ("null", Self::Null),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("string", Self::String),
        ("array", Self::Array),
        ("object", Self::Object),
    ];
}

/// Numbers are equal by value: 1 is 1.0.
pub(super) fn is_equal(listed: &Value, value: &Value) -> bool {
    match (listed.as_f64(), value.as_f64()) {
        (Some(listed), Some(value)) => listed.total_cmp(&value).is_eq(),
        _ => listed == value,
    }
}
