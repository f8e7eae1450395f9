//! From JSON values to typed objects, with the field that is wrong and the fields that nobody reads.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Longest excerpt of a value in a message.
const EXCERPT_CHARS_MAX: usize = 80;

/// Why a value is not an object of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misread {
    /// Path of the field.
    pub(super) field: String,
    /// Fault in words, with the value.
    pub(super) message: String,
}

/// Reads a value; with `unread`, also finds the fields that nobody reads.
pub(super) fn typed<T: DeserializeOwned + Serialize>(
    value: &Value,
    unread: Option<&mut Vec<String>>,
) -> Result<Box<T>, Misread> {
    let object = parse::<T>(value)?;
    if let Some(unread) = unread
        && let Ok(read) = serde_json::to_value(&object)
    {
        missing(value, &read, "", unread);
    }
    Ok(object)
}

/// Reads a value.
pub(super) fn parse<T: DeserializeOwned>(value: &Value) -> Result<Box<T>, Misread> {
    T::deserialize(value).map(Box::new).map_err(|error| {
        let message = error.to_string();
        let attempt = |value: &Value| T::deserialize(value).err().map(|it| it.to_string());
        let field = locate(&mut value.clone(), &message, &attempt);
        Misread { field, message }
    })
}

/// The path of the innermost value whose absence changes what is said of the whole: that is where the fault lies.
fn locate(whole: &mut Value, message: &str, attempt: &dyn Fn(&Value) -> Option<String>) -> String {
    let mut pointer = String::new();
    let mut path = String::new();
    'descend: loop {
        let Some(here) = whole.pointer(&pointer) else {
            return path;
        };
        for (step, name) in children(here) {
            let child = format!("{pointer}/{step}");
            let taken = match whole.pointer_mut(&pointer) {
                Some(Value::Object(map)) => map.remove(&name),
                Some(Value::Array(list)) => step.parse().ok().map(|at: usize| list.remove(at)),
                _ => None,
            };
            let Some(taken) = taken else { continue };
            let is_blamed = attempt(whole).as_deref() != Some(message);
            match whole.pointer_mut(&pointer) {
                Some(Value::Object(map)) => drop(map.insert(name.clone(), taken)),
                Some(Value::Array(list)) => {
                    let at = step.parse().unwrap_or(list.len());
                    list.insert(at.min(list.len()), taken);
                }
                _ => {}
            }
            if is_blamed {
                pointer = child;
                push(
                    &mut path,
                    &name,
                    step == name && name.parse::<usize>().is_ok(),
                );
                continue 'descend;
            }
        }
        return path;
    }
}

/// Steps of a JSON pointer into the children, with their names.
fn children(value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(map) => map
            .keys()
            .map(|key| (key.replace('~', "~0").replace('/', "~1"), key.clone()))
            .collect(),
        Value::Array(list) => (0..list.len())
            .map(|index| (index.to_string(), index.to_string()))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn push(path: &mut String, name: &str, is_index: bool) {
    if is_index || name.contains(['.', '/']) {
        path.push('[');
        path.push_str(name);
        path.push(']');
    } else {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
    }
}

/// Fields with a value that did not come back.
fn missing(given: &Value, read: &Value, path: &str, unread: &mut Vec<String>) {
    let below = |name: &str, is_index: bool| {
        let mut path = path.to_owned();
        push(&mut path, name, is_index);
        path
    };
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => {
            for (name, value) in given {
                match read.get(name) {
                    Some(read) => missing(value, read, &below(name, false), unread),
                    None if is_nothing(value) => {}
                    None => unread.push(below(name, false)),
                }
            }
        }
        (Value::Array(given), Value::Array(read)) => {
            for (index, (given, read)) in given.iter().zip(read).enumerate() {
                missing(given, read, &below(&index.to_string(), true), unread);
            }
        }
        _ => {}
    }
}

/// What serializing leaves out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A number for the fields of a value, whatever stands in them.
pub(super) fn form_of(value: &Value) -> u64 {
    fn feed(value: &Value, hasher: &mut DefaultHasher) {
        match value {
            Value::Object(map) => {
                map.len().hash(hasher);
                for (key, value) in map {
                    key.hash(hasher);
                    feed(value, hasher);
                }
            }
            Value::Array(list) => {
                list.len().hash(hasher);
                for value in list {
                    feed(value, hasher);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut hasher = DefaultHasher::new();
    feed(value, &mut hasher);
    hasher.finish()
}

/// The beginning of a value, for a message.
pub(super) fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(EXCERPT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
