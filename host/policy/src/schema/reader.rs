//! Reads a schema, within bounds; what of it nobody enforces is noted.
//!
//! Holds no configuration to it; that is `check.rs`'s.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::SchemaError;
use super::node::{Bound, Others, SchemaNode, SchemaType, ValueSchema, is_equal};
use crate::guest::limits::short;
use crate::rule::pattern::Pattern;

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

/// A way from the whole to a part.
type SchemaPath<'a> = Vec<&'a str>;

#[derive(Default)]
pub(super) struct SchemaReader {
    pub(super) patterns: usize,
    pub(super) notes: Vec<String>,
}

impl SchemaReader {
    pub(super) fn node<'a>(
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

    pub(super) fn shape<'a>(
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
                let values = values.ok_or_else(|| must_be(at, "a list of values"))?;
                narrow(&mut shape.one_of, values);
            }
            "const" => narrow(&mut shape.one_of, std::slice::from_ref(value)),
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

    pub(super) fn properties<'a>(
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

    pub(super) fn pattern(
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

/// Keeps the values that were listed before, too: a schema means both of its lists.
fn narrow(one_of: &mut Option<Vec<Value>>, values: &[Value]) {
    match one_of {
        Some(listed) => listed.retain(|it| values.iter().any(|value| is_equal(it, value))),
        None => *one_of = Some(values.to_vec()),
    }
}

pub(super) fn types(value: &Value, at: &SchemaPath<'_>) -> Result<Vec<SchemaType>, SchemaError> {
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

pub(super) fn text<'a>(value: &'a Value, at: &SchemaPath<'_>) -> Result<&'a str, SchemaError> {
    value.as_str().ok_or_else(|| must_be(at, "a text"))
}

pub(super) fn number(value: &Value, at: &SchemaPath<'_>) -> Result<f64, SchemaError> {
    value.as_f64().ok_or_else(|| must_be(at, "a number"))
}

pub(super) fn count(value: &Value, at: &SchemaPath<'_>) -> Result<u64, SchemaError> {
    let count = value.as_u64();
    count.ok_or_else(|| must_be(at, "a whole number that is not negative"))
}

pub(super) fn must_be(at: &SchemaPath<'_>, what: &str) -> SchemaError {
    fault(at, format!("must be {what}"))
}

pub(super) fn fault(at: &SchemaPath<'_>, fault: String) -> SchemaError {
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
pub(super) fn pointer(path: &[&str]) -> String {
    let escaped = |key: &&str| format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    short(path.iter().map(escaped).collect())
}
