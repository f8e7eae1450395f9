//! Label and field selectors, in the syntax of list and watch requests and in that of `LabelSelector` objects.
//!
//! Answers to apimachinery's `labels` and `fields`. A selector is parsed once and matched often. Looks nothing up: the
//! labels and fields of the object decide.

use std::borrow::Cow;

use serde_json::Value;

use crate::builtin::metadata::{label_value_problem, qualified_name_problem};
use crate::status::StatusError;

/// What a requirement asks of its label: the operator with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelOperator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
    /// None that anybody knows: no object satisfies it.
    Unknown,
}

/// A parsed label selector; the empty one matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParsedLabelSelector {
    requirements: Vec<(String, LabelOperator)>,
}

impl ParsedLabelSelector {
    /// Parses `app=web,tier in (a, b),!legacy`.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let mut requirements = Vec::new();
        for term in split_terms(text) {
            let term = term.trim();
            if !term.is_empty() {
                let (key, operator) = parse_requirement(term)?;
                check_requirement(&key, &operator)?;
                requirements.push((key, operator));
            }
        }
        Ok(Self { requirements })
    }

    /// Reads a `LabelSelector` object. A missing one matches everything, as an empty one does: callers
    /// decide what absence means.
    pub fn from_object(selector: &Value) -> Self {
        let mut requirements = Vec::new();
        if let Some(labels) = selector["matchLabels"].as_object() {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push((key.clone(), LabelOperator::In(vec![value])));
            }
        }
        for expression in selector["matchExpressions"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            let values = || -> Vec<String> {
                let list = expression["values"].as_array();
                list.into_iter()
                    .flatten()
                    .filter_map(|v| v.as_str().map(str::to_owned))
                    .collect()
            };
            let operator = match expression["operator"].as_str().unwrap_or_default() {
                "In" => LabelOperator::In(values()),
                "NotIn" => LabelOperator::NotIn(values()),
                "Exists" => LabelOperator::Exists,
                "DoesNotExist" => LabelOperator::DoesNotExist,
                _ => LabelOperator::Unknown,
            };
            requirements.push((key, operator));
        }
        Self { requirements }
    }

    /// Whether the selector has no requirement.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the object's labels satisfy every requirement.
    pub fn matches(&self, object: &Value) -> bool {
        if self.requirements.is_empty() {
            return true;
        }
        let labels = object.get("metadata").and_then(|m| m.get("labels"));
        self.matches_labels(labels)
    }

    /// Whether these labels satisfy every requirement.
    pub fn matches_labels(&self, labels: Option<&Value>) -> bool {
        self.requirements.iter().all(|(key, operator)| {
            let value = labels.and_then(|l| l.get(key)).and_then(Value::as_str);
            match operator {
                LabelOperator::In(values) => value.is_some_and(|v| values.iter().any(|x| x == v)),
                LabelOperator::NotIn(values) => {
                    !value.is_some_and(|v| values.iter().any(|x| x == v))
                }
                LabelOperator::Exists => value.is_some(),
                LabelOperator::DoesNotExist => value.is_none(),
                LabelOperator::GreaterThan(bound) => number(value).is_some_and(|v| v > *bound),
                LabelOperator::LessThan(bound) => number(value).is_some_and(|v| v < *bound),
                LabelOperator::Unknown => false,
            }
        })
    }
}

fn number(value: Option<&str>) -> Option<i64> {
    value.and_then(|v| v.parse().ok())
}

/// Splits at commas outside parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Keys and values that no label can have are a mistake of the writer.
fn check_requirement(key: &str, operator: &LabelOperator) -> Result<(), StatusError> {
    let values = match operator {
        LabelOperator::In(values) | LabelOperator::NotIn(values) => values.as_slice(),
        LabelOperator::Exists
        | LabelOperator::DoesNotExist
        | LabelOperator::GreaterThan(_)
        | LabelOperator::LessThan(_)
        | LabelOperator::Unknown => &[],
    };
    let of_key = qualified_name_problem(key).map(|problem| (key, problem));
    let of_values = || {
        let mut values = values.iter().map(String::as_str);
        values.find_map(|value| Some((value, label_value_problem(value)?)))
    };
    match of_key.or_else(of_values) {
        Some((given, problem)) => Err(StatusError::bad_request(format!(
            "unable to parse requirement: Invalid value: {given:?}: {problem}"
        ))),
        None => Ok(()),
    }
}

fn parse_requirement(term: &str) -> Result<(String, LabelOperator), StatusError> {
    let bad = || StatusError::bad_request(format!("unable to parse requirement: {term:?}"));
    if let Some(key) = term.strip_prefix('!') {
        return Ok((key.trim().to_owned(), LabelOperator::DoesNotExist));
    }
    if let Some((head, list)) = term.split_once('(') {
        let list = list.trim_end().strip_suffix(')').ok_or_else(bad)?;
        let values = list.split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        let key = words.next().ok_or_else(bad)?.to_owned();
        return match words.next() {
            Some("in") => Ok((key, LabelOperator::In(values))),
            Some("notin") => Ok((key, LabelOperator::NotIn(values))),
            _ => Err(bad()),
        };
    }
    for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
        if let Some((key, value)) = term.split_once(operator) {
            let values = vec![value.trim().to_owned()];
            let operator = if negated {
                LabelOperator::NotIn(values)
            } else {
                LabelOperator::In(values)
            };
            return Ok((key.trim().to_owned(), operator));
        }
    }
    if let Some((key, bound)) = term.split_once('>') {
        let bound = bound.trim().parse().map_err(|_| bad())?;
        return Ok((key.trim().to_owned(), LabelOperator::GreaterThan(bound)));
    }
    if let Some((key, bound)) = term.split_once('<') {
        let bound = bound.trim().parse().map_err(|_| bad())?;
        return Ok((key.trim().to_owned(), LabelOperator::LessThan(bound)));
    }
    if term.contains(char::is_whitespace) {
        return Err(bad());
    }
    Ok((term.to_owned(), LabelOperator::Exists))
}

/// What a field selector asks of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    /// The field as selectors call it, such as `spec.nodeName`.
    label: String,
    value: String,
    /// Whether the value must differ.
    is_negated: bool,
}

/// A parsed field selector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// Where a field is that selectors call otherwise than the object does: of Jobs and Events.
fn path_of(label: &str) -> Cow<'_, str> {
    match label {
        "status.successful" => "status.succeeded".into(),
        "source" => "source.component".into(),
        "reportingController" => "reportingComponent".into(),
        label => match label.strip_prefix("regarding.") {
            Some(field) => format!("involvedObject.{field}").into(),
            None => label.into(),
        },
    }
}

impl FieldSelector {
    /// Parses `spec.nodeName=a,status.phase!=Running`. Any path to a scalar can be matched; which of them a kind
    /// serves is asked of it before.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let mut terms = Vec::new();
        for term in text.split(',').map(str::trim).filter(|t| !t.is_empty()) {
            let (label, value, is_negated) = if let Some((p, v)) = term.split_once("!=") {
                (p, v, true)
            } else if let Some((p, v)) = term.split_once("==") {
                (p, v, false)
            } else if let Some((p, v)) = term.split_once('=') {
                (p, v, false)
            } else {
                let message = format!("invalid selector: {text:?}; can't understand {term:?}");
                return Err(StatusError::bad_request(message));
            };
            terms.push(FieldTerm {
                label: label.trim().to_owned(),
                value: value.trim().to_owned(),
                is_negated,
            });
        }
        Ok(Self { terms })
    }

    /// The fields it asks for, as selectors call them.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| term.label.as_str())
    }

    /// Whether the object satisfies every term; an absent field reads as what it is when it is empty.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| {
            let mut at = Some(object);
            for step in path_of(&term.label).split('.') {
                at = at.and_then(|v| v.get(step));
            }
            let wanted = &term.value;
            let is_equal = match at {
                None | Some(Value::Null) => matches!(wanted.as_str(), "" | "false" | "0"),
                Some(Value::String(text)) => text == wanted,
                Some(other) => serde_json::from_str::<Value>(wanted).is_ok_and(|w| w == *other),
            };
            is_equal != term.is_negated
        })
    }
}

/// Everything a list or watch may narrow by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Only this namespace; all when absent.
    pub namespace: Option<String>,
    /// Only objects with such labels.
    pub labels: ParsedLabelSelector,
    /// Only objects with such fields.
    pub fields: FieldSelector,
}

impl Selection {
    /// Every object of every namespace.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Every object of one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..Self::default()
        }
    }

    /// Narrows by a label selector such as `app=web`.
    pub fn labelled(mut self, selector: &str) -> Result<Self, StatusError> {
        self.labels = ParsedLabelSelector::parse(selector)?;
        Ok(self)
    }

    pub(super) fn is_everything(&self) -> bool {
        self.namespace.is_none() && self.is_by_namespace()
    }

    /// Whether only the namespace counts.
    pub(super) fn is_by_namespace(&self) -> bool {
        self.labels.is_empty() && self.fields.terms.is_empty()
    }

    /// Whether the object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.namespace.as_ref().is_none_or(|wanted| {
            object["metadata"]["namespace"].as_str().unwrap_or_default() == wanted
        }) && self.labels.matches(object)
            && self.fields.matches(object)
    }
}
