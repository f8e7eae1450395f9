//! Values: while they are computed with, and as expressions and settings carry them.
//!
//! What is not there is a value too: it equals nothing, as a condition it is false, and what is computed with it is
//! absent again. So a label that one claim lacks decides about that claim alone.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::types::RuleType;

/// A value while it is computed with.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Absent,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(&'a str),
    /// A text that an expression made; copies share it.
    Made(Rc<str>),
    /// A moment, in seconds since 1970.
    Moment(i64),
    /// A list that an expression made.
    List(Rc<Vec<Value<'a>>>),
    /// A list of the settings.
    Items(&'a Items),
    /// A map of the settings.
    Entries(&'a Entries),
}

/// A literal; copies share what they hold.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Absent,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Arc<str>),
    Moment(i64),
    List(Arc<Items>),
    Map(Arc<Entries>),
}

/// A list of settings.
#[derive(Debug, PartialEq)]
pub(crate) struct Items {
    pub(crate) items: Vec<Literal>,
    /// Of one item; `None` when they differ.
    pub(crate) of: Option<RuleType>,
}

/// A map of settings.
#[derive(Debug, PartialEq)]
pub(crate) struct Entries {
    pub(crate) entries: BTreeMap<String, Literal>,
    /// Of one value; `None` when they differ.
    pub(crate) of: Option<RuleType>,
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(text)
    }

    pub(crate) fn made(text: &str) -> Self {
        Self::Made(Rc::from(text))
    }

    /// A count of the tables, all of which are small enough.
    pub(crate) fn count(count: u32) -> Self {
        Self::Int(i64::from(count))
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    pub(crate) fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// The number; NaN for what is none, which types rule out.
    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Int(value) => *value as f64,
            Self::Double(value) => *value,
            Self::Moment(seconds) => *seconds as f64,
            Self::Absent
            | Self::Bool(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::List(_)
            | Self::Items(_)
            | Self::Entries(_) => f64::NAN,
        }
    }

    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Self::Int(value) | Self::Moment(value) => Some(*value),
            Self::Absent
            | Self::Bool(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::List(_)
            | Self::Items(_)
            | Self::Entries(_) => None,
        }
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Made(_))
    }

    pub(crate) fn as_text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Made(text) => text,
            Self::Absent
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Double(_)
            | Self::Moment(_)
            | Self::List(_)
            | Self::Items(_)
            | Self::Entries(_) => "",
        }
    }

    /// Items of a list, keys of a map.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::List(items) => items.len(),
            Self::Items(items) => items.items.len(),
            Self::Entries(map) => map.entries.len(),
            Self::Absent
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::Moment(_) => 0,
        }
    }

    /// The items of a list or the keys of a map.
    pub(crate) fn items(&self) -> Box<dyn Iterator<Item = Value<'a>> + '_> {
        match self {
            Self::List(items) => Box::new(items.iter().cloned()),
            Self::Items(items) => {
                let items: &'a Items = items;
                Box::new(items.items.iter().map(Literal::value))
            }
            Self::Entries(map) => {
                let map: &'a Entries = map;
                Box::new(map.entries.keys().map(|key| Value::text(key)))
            }
            Self::Absent
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::Moment(_) => Box::new(std::iter::empty()),
        }
    }

    /// What a map holds under a key, or a list at a place.
    pub(crate) fn at(&self, key: &Value<'_>) -> Value<'a> {
        let place = || key.int().and_then(|it| usize::try_from(it).ok());
        let found = match self {
            Self::Entries(map) => map.entries.get(key.as_text()).map(Literal::value),
            Self::Items(items) => place().and_then(|it| items.items.get(it).map(Literal::value)),
            Self::List(items) => place().and_then(|it| items.get(it).cloned()),
            Self::Absent
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Double(_)
            | Self::Text(_)
            | Self::Made(_)
            | Self::Moment(_) => None,
        };
        found.unwrap_or(Value::Absent)
    }

    /// The value as a literal, which borrows nothing, where a literal can hold it.
    pub(crate) fn literal(&self) -> Option<Literal> {
        Some(match self {
            Self::Absent => Literal::Absent,
            Self::Bool(value) => Literal::Bool(*value),
            Self::Int(value) => Literal::Int(*value),
            Self::Double(value) => Literal::Double(*value),
            Self::Text(text) => Literal::Text(Arc::from(*text)),
            Self::Made(text) => Literal::Text(Arc::from(&**text)),
            Self::Moment(seconds) => Literal::Moment(*seconds),
            Self::List(_) | Self::Items(_) | Self::Entries(_) => return None,
        })
    }

    /// How two values are ordered; `None` for what has no order.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Absent, _) | (_, Self::Absent) => None,
            (left, right) if left.is_text() && right.is_text() => {
                Some(left.as_text().cmp(right.as_text()))
            }
            (Self::Bool(left), Self::Bool(right)) => Some(left.cmp(right)),
            (Self::Int(left), Self::Int(right)) | (Self::Moment(left), Self::Moment(right)) => {
                Some(left.cmp(right))
            }
            _ => self.number().partial_cmp(&other.number()),
        }
    }
}

impl Literal {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Absent => Value::Absent,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Double(value) => Value::Double(*value),
            Self::Text(text) => Value::text(text),
            Self::Moment(seconds) => Value::Moment(*seconds),
            Self::List(items) => Value::Items(items),
            Self::Map(map) => Value::Entries(map),
        }
    }

    /// Its type; lists and maps of several types are records.
    pub(crate) fn of(&self) -> RuleType {
        match self {
            Self::Absent => RuleType::Unknown,
            Self::Bool(_) => RuleType::Bool,
            Self::Int(_) => RuleType::Int,
            Self::Double(_) => RuleType::Double,
            Self::Text(_) => RuleType::Text,
            Self::Moment(_) => RuleType::Moment,
            Self::List(items) => items.of.clone().map_or(RuleType::Record, RuleType::list),
            Self::Map(map) => map.of.clone().map_or(RuleType::Record, RuleType::map),
        }
    }

    /// Settings, as a ConfigMap gives them.
    pub(crate) fn settings(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Absent,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => Self::Double(number.as_f64().unwrap_or(0.0)),
            },
            serde_json::Value::String(text) => Self::Text(Arc::from(text)),
            serde_json::Value::Array(items) => {
                Self::list(items.into_iter().map(Self::settings).collect())
            }
            serde_json::Value::Object(entries) => {
                let entries = entries.into_iter();
                let entries = entries.map(|(key, value)| (key, Self::settings(value)));
                let entries: BTreeMap<_, _> = entries.collect();
                let of = joined(entries.values());
                Self::Map(Arc::new(Entries { entries, of }))
            }
        }
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        let of = joined(items.iter());
        Self::List(Arc::new(Items { items, of }))
    }
}

fn joined<'a>(mut literals: impl Iterator<Item = &'a Literal>) -> Option<RuleType> {
    literals.try_fold(RuleType::Unknown, |of, literal| of.joined(&literal.of()))
}
