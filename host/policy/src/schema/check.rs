//! Holding a configuration to a schema: everything that is wrong with it, each with its place, what is there and
//! what would be right.
//!
//! What is looked at is counted, so that a large table of settings against a hostile schema ends.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ConfigSchema;
use super::node::{CountRange, Others, SchemaNode, SchemaType, ValueSchema, is_equal};
use super::reader::pointer;
use crate::guest::limits::short;
use crate::typo::{distance, near};

/// Values, keys and list items that are looked at; a text counts as one for each 64 bytes.
const STEPS_MAX: u64 = 500_000;
/// Faults that are told.
const FAULTS_MAX: usize = 16;
/// Longest value that is shown whole.
const SHOWN_BYTES_MAX: usize = 48;
/// Keys longer than this are not taken for mistyped ones, and no more keys are compared.
const NAME_BYTES_MAX: usize = 40;
const NAMES_MAX: usize = 256;
/// Known keys that are told where none is near.
const NAMES_LISTED_MAX: usize = 12;

impl ConfigSchema {
    /// Faults of a configuration, as one text; `None` when there is none. No configuration, and `null`, as a file of
    /// comments reads, are an empty object.
    pub(crate) fn faults(&self, config: &str) -> Option<String> {
        let config = if config.trim().is_empty() {
            "null"
        } else {
            config
        };
        let value = match serde_json::from_str(config) {
            Ok(Value::Null) => Value::Object(Map::new()),
            Ok(value) => value,
            Err(error) => return Some(format!("cannot be read: {error}")),
        };
        let mut check = SchemaCheck::default();
        check.node(&self.root, &value, &mut Vec::new());
        check.into_text()
    }
}

/// A key or the number of an item.
enum PathStep<'a> {
    Key(&'a str),
    Item(usize),
}

type ValuePath<'a> = Vec<PathStep<'a>>;

#[derive(Default)]
struct SchemaCheck {
    steps: u64,
    faults: Vec<String>,
    unlisted: usize,
}

impl SchemaCheck {
    fn into_text(mut self) -> Option<String> {
        if self.steps > STEPS_MAX {
            self.faults.push(format!(
                "checking it against the policy's config-schema takes more than {STEPS_MAX} steps; shorten one of them"
            ));
        }
        if self.unlisted > 0 {
            self.faults.push(format!("and {} more", self.unlisted));
        }
        (!self.faults.is_empty()).then(|| self.faults.join("; "))
    }

    /// Counts; false once there was too much.
    fn goes_on(&mut self, steps: usize) -> bool {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps = self.steps.saturating_add(steps);
        self.steps <= STEPS_MAX
    }

    fn fault(&mut self, at: &ValuePath<'_>, fault: impl FnOnce() -> String) {
        if self.faults.len() >= FAULTS_MAX {
            self.unlisted += 1;
            return;
        }
        let items: Vec<String> = at
            .iter()
            .map(|step| match step {
                PathStep::Key(key) => (*key).to_owned(),
                PathStep::Item(number) => number.to_string(),
            })
            .collect();
        let place = pointer(&items.iter().map(String::as_str).collect::<Vec<_>>());
        let fault = short(fault());
        self.faults.push(if place.is_empty() {
            fault
        } else {
            format!("{place} {fault}")
        });
    }

    fn node<'a>(&mut self, node: &SchemaNode, value: &'a Value, at: &mut ValuePath<'a>) {
        if !self.goes_on(1 + text_steps(value)) {
            return;
        }
        match node {
            SchemaNode::Anything => {}
            SchemaNode::Nothing => self.fault(at, || {
                format!("is {}; nothing may stand here", shown(value))
            }),
            SchemaNode::Shape(shape) => self.shape(shape, value, at),
        }
    }

    fn shape<'a>(&mut self, shape: &ValueSchema, value: &'a Value, at: &mut ValuePath<'a>) {
        if !shape.types.is_empty() && !shape.types.iter().any(|it| it.is_of(value))
            || !self.suits(shape, value)
        {
            self.fault(at, || {
                format!("is {}; must be {}", shown(value), shape.words())
            });
            return;
        }
        match value {
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    if let Some(node) = &shape.items {
                        at.push(PathStep::Item(number));
                        self.node(node, item, at);
                        at.pop();
                    }
                }
            }
            Value::Object(fields) => self.object(shape, fields, at),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether a value of the right type is one of those that are meant.
    fn suits(&mut self, shape: &ValueSchema, value: &Value) -> bool {
        let is_listed = shape.one_of.as_ref().is_none_or(|all| {
            let mut all = all.iter();
            all.any(|it| self.goes_on(weight(it)) && is_equal(it, value))
        });
        is_listed
            && match value {
                Value::Number(number) => {
                    let number = number.as_f64().unwrap_or(f64::NAN);
                    shape.is_within(number)
                }
                Value::String(text) => {
                    let letters = text.chars().count();
                    let is_long_enough = shape.length.contains(letters);
                    let mut pattern = shape.pattern.iter();
                    is_long_enough
                        && pattern.all(|(_, pattern)| {
                            let steps = usize::try_from(pattern.steps(text)).unwrap_or(usize::MAX);
                            self.goes_on(steps) && pattern.is_match(text)
                        })
                }
                Value::Array(items) => shape.count.contains(items.len()),
                Value::Null | Value::Bool(_) | Value::Object(_) => true,
            }
    }

    fn object<'a>(
        &mut self,
        shape: &ValueSchema,
        fields: &'a Map<String, Value>,
        at: &mut ValuePath<'a>,
    ) {
        for name in &shape.required {
            if self.goes_on(1) && !fields.contains_key(name) {
                self.fault(at, || missing(shape, name));
            }
        }
        for (key, value) in fields {
            at.push(PathStep::Key(key));
            match (shape.properties.get(key), &shape.others) {
                (Some(node), _) | (None, Others::Each(node)) => self.node(node, value, at),
                (None, Others::Nothing) => {
                    if self.goes_on(1) {
                        self.fault(at, || unknown(&shape.properties, key));
                    }
                }
                (None, Others::Anything) => {}
            }
            at.pop();
        }
    }
}

impl SchemaType {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Number => value.is_number(),
            Self::Integer => value.as_f64().is_some_and(|it| it.fract() == 0.0),
            Self::String => value.is_string(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

fn text_steps(value: &Value) -> usize {
    value.as_str().map_or(0, |it| it.len() / 64)
}

impl CountRange {
    fn contains(self, count: usize) -> bool {
        let Self { least, most } = self;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        least.is_none_or(|it| count >= it) && most.is_none_or(|it| count <= it)
    }
}

/// Steps that comparing with a value takes.
fn weight(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.values().map(weight).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text_steps(value),
    };
    1 + inner
}

fn missing(shape: &ValueSchema, name: &str) -> String {
    let what = match shape.properties.get(name) {
        Some(SchemaNode::Shape(it)) => format!(": {}", it.words()),
        Some(SchemaNode::Anything | SchemaNode::Nothing) | None => String::new(),
    };
    format!("lacks {}{what}", cut(name))
}

fn unknown(known: &BTreeMap<String, SchemaNode>, key: &str) -> String {
    let names = known.keys().filter(|it| it.len() <= NAME_BYTES_MAX);
    let names: Vec<&String> = names.take(NAMES_MAX).collect();
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let meant = || {
        let word = plain(key);
        let all = names.iter().map(|it| (distance(&word, &plain(it)), *it));
        all.min().filter(|(apart, _)| *apart <= near(&word, 2))
    };
    let nearest = (key.len() <= NAME_BYTES_MAX).then(meant).flatten();
    match nearest {
        Some((_, name)) => format!("is no setting; did you mean {name}?"),
        None if names.is_empty() => "is no setting; there are none, take it out".to_owned(),
        None => {
            let listed = names.iter().take(NAMES_LISTED_MAX);
            let listed: Vec<&str> = listed.map(|it| it.as_str()).collect();
            let more = if known.len() > listed.len() {
                ", ..."
            } else {
                ""
            };
            let listed = listed.join(", ");
            format!("is no setting; take it out, or use {listed}{more}")
        }
    }
}

/// A value as it stands, its beginning where it is long.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "an empty object".to_owned(),
        Value::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::String(text) => format!("{:?}", cut(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    match text.get(..end) {
        Some(head) if head.len() < text.len() => format!("{head}.."),
        Some(_) | None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
