//! Selectors of devices: CEL over what a driver tells of a device.
//!
//! Quantities are whole thousandths and versions are texts, both with the methods that Kubernetes gives them.

#![expect(
    clippy::needless_pass_by_value,
    reason = "CEL hands arguments to functions by value"
)]

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, ExecutionError, Program, Value};
use scheduling::device::Attribute;
use serde::Serialize;

use super::wire::DeviceBody;

/// Facts of a device that selectors see, with what CEL makes of them once one looks.
#[derive(Debug)]
pub(super) struct DeviceFacts {
    told: ToldDevice,
    seen: OnceCell<Result<Value, String>>,
}

/// A device as a driver tells of it.
#[derive(Debug, Serialize)]
struct ToldDevice {
    driver: String,
    /// By domain and name.
    attributes: BTreeMap<String, BTreeMap<String, DeviceFact>>,
    capacity: BTreeMap<String, BTreeMap<String, DeviceFact>>,
    #[serde(rename = "allowMultipleAllocations")]
    is_shared: bool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum DeviceFact {
    Number(i64),
    Truth(bool),
    Text(String),
}

/// Compiled selectors, by their text.
pub(super) struct Selectors {
    programs: SelectorPrograms,
    /// The functions that they may call.
    functions: Result<Context<'static, 'static>, String>,
}

type SelectorPrograms = BTreeMap<String, Result<Arc<Program>, String>>;

impl DeviceFacts {
    pub(super) fn of(driver: &str, body: &DeviceBody) -> Self {
        let split = |name: &str| match name.split_once('/') {
            Some((domain, name)) => (domain.to_owned(), name.to_owned()),
            None => (driver.to_owned(), name.to_owned()),
        };
        let own = || BTreeMap::from([(driver.to_owned(), BTreeMap::new())]);
        let (mut attributes, mut capacity) = (own(), own());
        for (name, value) in &body.attributes {
            let fact = match value.value() {
                Some(Attribute::Int(number)) => DeviceFact::Number(number),
                Some(Attribute::Bool(truth)) => DeviceFact::Truth(truth),
                Some(Attribute::Text(text) | Attribute::Version(text)) => DeviceFact::Text(text),
                None => continue,
            };
            let (domain, name) = split(name);
            attributes.entry(domain).or_default().insert(name, fact);
        }
        for (name, amount) in &body.capacity {
            let (domain, name) = split(name);
            let fact = DeviceFact::Number(amount.millis());
            capacity.entry(domain).or_default().insert(name, fact);
        }
        Self {
            told: ToldDevice {
                driver: driver.to_owned(),
                attributes,
                capacity,
                is_shared: body.is_shared(),
            },
            seen: OnceCell::new(),
        }
    }

    fn value(&self) -> Result<Value, String> {
        let made = || cel::to_value(&self.told).map_err(|error| error.to_string());
        self.seen.get_or_init(made).clone()
    }
}

impl Selectors {
    /// None compiled yet.
    pub(super) fn new() -> Self {
        Self {
            programs: BTreeMap::new(),
            functions: functions(),
        }
    }

    /// Whether all expressions hold for a device; one that stumbles over it, as over an attribute that it lacks, does
    /// not hold.
    pub(super) fn admit(
        &mut self,
        expressions: &[&str],
        facts: &DeviceFacts,
    ) -> Result<bool, String> {
        if expressions.is_empty() {
            return Ok(true);
        }
        let Self {
            programs,
            functions,
        } = self;
        let functions = functions.as_ref().map_err(Clone::clone)?;
        let mut context = functions.new_inner_scope();
        context.add_variable_from_value("device", facts.value()?);
        for expression in expressions {
            match program(programs, expression)?.execute(&context) {
                Ok(Value::Bool(true)) => {}
                Ok(_) | Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn functions() -> Result<Context<'static, 'static>, String> {
    let mut context = Context::default();
    let functions = [
        context.add_function("quantity", quantity),
        context.add_function("semver", semver),
        context.add_function("compareTo", compare_to),
        context.add_function("isGreaterThan", is_greater_than),
        context.add_function("isLessThan", is_less_than),
    ];
    match functions.into_iter().find_map(Result::err) {
        Some(error) => Err(format!("a function was refused: {error}")),
        None => Ok(context),
    }
}

fn program(programs: &mut SelectorPrograms, expression: &str) -> Result<Arc<Program>, String> {
    if let Some(known) = programs.get(expression) {
        return known.clone();
    }
    let program = Program::compile(expression).map(Arc::new);
    let program =
        program.map_err(|error| format!("selector {expression:?} does not compile: {error}"));
    programs.insert(expression.to_owned(), program.clone());
    program
}

fn quantity(text: Arc<String>) -> Result<i64, ExecutionError> {
    apis::quantity::parse_millis(&text)
        .map_err(|error| ExecutionError::function_error("quantity", error.to_string()))
}

fn semver(text: Arc<String>) -> Arc<String> {
    text
}

fn compare_to(This(this): This<Value>, other: Value) -> Result<i64, ExecutionError> {
    compare(&this, &other).map(|it| it as i64)
}

fn is_greater_than(This(this): This<Value>, other: Value) -> Result<bool, ExecutionError> {
    compare(&this, &other).map(Ordering::is_gt)
}

fn is_less_than(This(this): This<Value>, other: Value) -> Result<bool, ExecutionError> {
    compare(&this, &other).map(Ordering::is_lt)
}

fn compare(this: &Value, other: &Value) -> Result<Ordering, ExecutionError> {
    match (this, other) {
        (Value::Int(this), Value::Int(other)) => Ok(this.cmp(other)),
        (Value::String(this), Value::String(other)) => Ok(version(this).cmp(&version(other))),
        _ => Err(ExecutionError::function_error(
            "compareTo",
            "takes two quantities or two versions",
        )),
    }
}

/// Part of what follows the hyphen of a version, in semver's order: numbers come before words.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreviewIdentifier {
    Number(u64),
    Word(String),
}

/// A version; the order of the fields is semver's order of versions.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SemanticVersion {
    numbers: Vec<u64>,
    /// Releases come after their previews.
    is_release: bool,
    preview: Vec<PreviewIdentifier>,
}

fn version(text: &str) -> SemanticVersion {
    let version = text.trim_start_matches('v');
    let version = version.split('+').next().unwrap_or(version);
    let (numbers, preview) = version.split_once('-').unwrap_or((version, ""));
    let numbers = numbers.split('.').map(|it| it.parse().unwrap_or(0));
    let identifier = |it: &str| match it.parse() {
        Ok(number) => PreviewIdentifier::Number(number),
        Err(_) => PreviewIdentifier::Word(it.to_owned()),
    };
    SemanticVersion {
        numbers: numbers.collect(),
        is_release: preview.is_empty(),
        preview: preview.split('.').map(identifier).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_semver() {
        let ascending = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
        ];
        for pair in ascending.windows(2) {
            assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        }
    }
}
