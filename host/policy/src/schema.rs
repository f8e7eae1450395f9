//! The settings that a component says it takes: the part of JSON Schema that settings need, read once, so that a
//! configuration is held to it before the policy sees it.
//!
//! Read are `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`, `minimum`, `maximum`,
//! `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`, `pattern`, `minItems`, `maxItems`, and for people
//! `title`, `description` and `default`. Other words are ignored, as JSON Schema says; of those that would refuse
//! something there is a note. A schema comes from whoever wrote the policy, so its size, its depth (that of the JSON
//! reader) and its patterns are bounded, and what checking takes is counted (`check.rs`).

mod check;
mod settings;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::limits::short;
use crate::rule::pattern::Pattern;

pub use settings::Setting;

/// Longest schema; it is read whole, since a part of one is none.
pub(crate) const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Patterns of one schema: each is compiled.
const PATTERNS_MAX: usize = 16;
/// Notes that are kept.
const NOTES_MAX: usize = 8;

/// Words of JSON Schema that refuse something, and that nobody reads here.
const NOT_ENFORCED: [&str; 21] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "prefixItems",
    "unevaluatedItems",
    "additionalItems",
    "contains",
    "uniqueItems",
    "multipleOf",
];

/// Why a text is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "config-schema{place}: {fault}; mend the schema of the component, or leave it empty to check nothing"
)]
pub struct SchemaError {
    /// A colon and the JSON pointer of what is wrong; empty where it is the whole.
    place: String,
    fault: String,
}

/// What a configuration must be.
#[derive(Debug, Clone)]
pub struct ConfigSchema {
    root: SchemaNode,
    /// What of it is not enforced.
    notes: Vec<String>,
}

/// A schema within a schema.
#[derive(Debug, Clone)]
enum SchemaNode {
    /// `true`, or nothing said.
    Anything,
    /// `false`.
    Nothing,
    Shape(Box<ValueSchema>),
}

/// What is said of a value.
#[derive(Debug, Clone, Default)]
struct ValueSchema {
    /// None means any.
    types: Vec<SchemaType>,
    properties: BTreeMap<String, SchemaNode>,
    required: Vec<String>,
    /// `additionalProperties`.
    others: Others,
    items: Option<SchemaNode>,
    one_of: Option<Vec<Value>>,
    least: Bound,
    most: Bound,
    length: CountRange,
    count: CountRange,
    pattern: Option<(String, Pattern)>,
    description: String,
    default: Option<Value>,
}

/// How many there may be.
#[derive(Debug, Clone, Copy, Default)]
struct CountRange {
    least: Option<u64>,
    most: Option<u64>,
}

/// What may stand under keys that `properties` does not name.
#[derive(Debug, Clone, Default)]
enum Others {
    #[default]
    Anything,
    Nothing,
    Each(SchemaNode),
}

/// An end of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Bound {
    #[default]
    None,
    Inclusive(f64),
    Exclusive(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl SchemaType {
    const ALL: [(&str, Self); 7] = [
        ("null", Self::Null),
        ("boolean", Self::Boolean),
        ("integer", Self::Integer),
        ("number", Self::Number),
        ("string", Self::String),
        ("array", Self::Array),
        ("object", Self::Object),
    ];
}

impl ConfigSchema {
    /// Reads a schema; `None` where the text is empty, which says nothing of the settings.
    pub fn parse(text: &str) -> Result<Option<Self>, SchemaError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let whole = |fault: String| SchemaError {
            place: String::new(),
            fault,
        };
        if text.len() > SCHEMA_BYTES_MAX {
            let bytes = text.len();
            return Err(whole(format!(
                "has {bytes} bytes and may have {SCHEMA_BYTES_MAX}"
            )));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| whole(short(format!("is no JSON: {error}"))))?;
        let mut reader = SchemaReader::default();
        let root = reader.node(&value, &mut Vec::new())?;
        Ok(Some(Self {
            root,
            notes: reader.notes,
        }))
    }

    /// What of it is not enforced, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// A way from the whole to a part.
type SchemaPath<'a> = Vec<&'a str>;

#[derive(Default)]
struct SchemaReader {
    patterns: usize,
    notes: Vec<String>,
}

impl SchemaReader {
    fn node<'a>(
        &mut self,
        value: &'a Value,
        at: &mut SchemaPath<'a>,
    ) -> Result<SchemaNode, SchemaError> {
        match value {
            Value::Bool(true) => Ok(SchemaNode::Anything),
            Value::Bool(false) => Ok(SchemaNode::Nothing),
            Value::Object(words) => self
                .shape(words, at)
                .map(|it| SchemaNode::Shape(Box::new(it))),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(must_be(at, "a schema: an object, true or false"))
            }
        }
    }

    fn shape<'a>(
        &mut self,
        words: &'a Map<String, Value>,
        at: &mut SchemaPath<'a>,
    ) -> Result<ValueSchema, SchemaError> {
        let mut shape = ValueSchema::default();
        for (word, value) in words {
            at.push(word);
            self.word(word, value, &mut shape, at)?;
            at.pop();
        }
        // What these say of some keys and items is not known, so that the rest cannot be told from them.
        if words.contains_key("patternProperties") {
            shape.others = Others::Anything;
        }
        if words.contains_key("prefixItems") {
            shape.items = None;
        }
        Ok(shape)
    }

    fn word<'a>(
        &mut self,
        word: &str,
        value: &'a Value,
        shape: &mut ValueSchema,
        at: &mut SchemaPath<'a>,
    ) -> Result<(), SchemaError> {
        match word {
            "type" => shape.types = types(value, at)?,
            "properties" => shape.properties = self.properties(value, at)?,
            "required" => shape.required = texts(value, at)?,
            "additionalProperties" => {
                shape.others = match self.node(value, at)? {
                    SchemaNode::Anything => Others::Anything,
                    SchemaNode::Nothing => Others::Nothing,
                    each @ SchemaNode::Shape(_) => Others::Each(each),
                }
            }
            // A list of schemas is the `prefixItems` of older versions.
            "items" if value.is_array() => self.note(at),
            "items" => shape.items = Some(self.node(value, at)?),
            "enum" => {
                let values = value.as_array().filter(|it| !it.is_empty());
                shape.one_of = Some(
                    values
                        .ok_or_else(|| must_be(at, "a list of values"))?
                        .clone(),
                );
            }
            "const" => shape.one_of = Some(vec![value.clone()]),
            "minimum" => shape.least = shape.least.tighter(Bound::Inclusive(number(value, at)?), 1),
            "exclusiveMinimum" => {
                shape.least = shape.least.tighter(Bound::Exclusive(number(value, at)?), 1);
            }
            "maximum" => shape.most = shape.most.tighter(Bound::Inclusive(number(value, at)?), -1),
            "exclusiveMaximum" => {
                shape.most = shape.most.tighter(Bound::Exclusive(number(value, at)?), -1);
            }
            "minLength" => shape.length.least = Some(count(value, at)?),
            "maxLength" => shape.length.most = Some(count(value, at)?),
            "minItems" => shape.count.least = Some(count(value, at)?),
            "maxItems" => shape.count.most = Some(count(value, at)?),
            "pattern" => shape.pattern = Some(self.pattern(value, at)?),
            "description" => text(value, at)?.clone_into(&mut shape.description),
            "title" if shape.description.is_empty() => {
                text(value, at)?.clone_into(&mut shape.description);
            }
            "default" => shape.default = Some(value.clone()),
            _ if NOT_ENFORCED.contains(&word) => self.note(at),
            _ => {}
        }
        Ok(())
    }

    fn properties<'a>(
        &mut self,
        value: &'a Value,
        at: &mut SchemaPath<'a>,
    ) -> Result<BTreeMap<String, SchemaNode>, SchemaError> {
        let Value::Object(properties) = value else {
            return Err(must_be(at, "an object of schemas"));
        };
        let mut read = BTreeMap::new();
        for (name, value) in properties {
            at.push(name);
            read.insert(name.clone(), self.node(value, at)?);
            at.pop();
        }
        Ok(read)
    }

    fn pattern(
        &mut self,
        value: &Value,
        at: &SchemaPath<'_>,
    ) -> Result<(String, Pattern), SchemaError> {
        let pattern = text(value, at)?;
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(fault(
                at,
                format!("the schema has more than {PATTERNS_MAX} patterns"),
            ));
        }
        let compiled = Pattern::new(pattern).map_err(|error| fault(at, error))?;
        Ok((pattern.to_owned(), compiled))
    }

    fn note(&mut self, at: &SchemaPath<'_>) {
        if self.notes.len() < NOTES_MAX {
            let place = pointer(at);
            self.notes.push(format!(
                "config-schema: {place} is not enforced; the policy itself must check it"
            ));
        }
    }
}

impl Bound {
    /// The narrower of two ends; `side` is 1 for the lower one and -1 for the upper.
    fn tighter(self, other: Self, side: i8) -> Self {
        let side = f64::from(side);
        match (self, other) {
            (Self::None, it) | (it, Self::None) => it,
            (
                Self::Inclusive(ours) | Self::Exclusive(ours),
                Self::Inclusive(theirs) | Self::Exclusive(theirs),
            ) => {
                let is_further = theirs * side > ours * side;
                let is_equal = theirs.total_cmp(&ours).is_eq();
                if is_further || is_equal && matches!(other, Self::Exclusive(_)) {
                    other
                } else {
                    self
                }
            }
        }
    }
}

fn types(value: &Value, at: &SchemaPath<'_>) -> Result<Vec<SchemaType>, SchemaError> {
    let known = |value: &Value| {
        let found = SchemaType::ALL.iter().find(|(word, _)| value == word);
        found.map(|(_, it)| *it)
    };
    let all: Option<Vec<SchemaType>> = match value {
        Value::Array(types) if !types.is_empty() => types.iter().map(known).collect(),
        one => known(one).map(|it| vec![it]),
    };
    let words = SchemaType::ALL.map(|(word, _)| word).join(", ");
    all.ok_or_else(|| must_be(at, &format!("one of {words}, or a list of them")))
}

fn texts(value: &Value, at: &SchemaPath<'_>) -> Result<Vec<String>, SchemaError> {
    let texts: Option<Vec<String>> = value.as_array().and_then(|all| {
        let all = all.iter();
        all.map(|it| it.as_str().map(str::to_owned)).collect()
    });
    texts.ok_or_else(|| must_be(at, "a list of names"))
}

fn text<'a>(value: &'a Value, at: &SchemaPath<'_>) -> Result<&'a str, SchemaError> {
    value.as_str().ok_or_else(|| must_be(at, "a text"))
}

fn number(value: &Value, at: &SchemaPath<'_>) -> Result<f64, SchemaError> {
    value.as_f64().ok_or_else(|| must_be(at, "a number"))
}

fn count(value: &Value, at: &SchemaPath<'_>) -> Result<u64, SchemaError> {
    let count = value.as_u64();
    count.ok_or_else(|| must_be(at, "a whole number that is not negative"))
}

fn must_be(at: &SchemaPath<'_>, what: &str) -> SchemaError {
    fault(at, format!("must be {what}"))
}

fn fault(at: &SchemaPath<'_>, fault: String) -> SchemaError {
    let place = pointer(at);
    SchemaError {
        place: if place.is_empty() {
            place
        } else {
            format!(" {place}")
        },
        fault: short(fault),
    }
}

/// The JSON pointer of a way.
fn pointer(path: &[&str]) -> String {
    let escaped = |key: &&str| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    short(path.iter().map(escaped).collect())
}
