//! `x-kubernetes-validations`: rules in CEL over `self` and `oldSelf`.
//!
//! A rule is compiled once, when its definition is stored. Answers to apiextensions-apiserver's `schema/cel`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use cel::extractors::This;
use cel::objects::{Key, Map, OptionalValue};
use cel::{Context, Env, ExecutionError, Program, Value as CelValue};
use serde_json::Value;

use super::pattern::pattern;
use super::{Schema, ValueType};
use crate::status::FieldError;

/// The language as the API server offers it: CEL, its string and list libraries.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    for extension in [cel::extensions::strings, cel::extensions::lists] {
        if let Err(error) = env.add_extension(extension) {
            tracing::error!(%error, "a CEL library was refused");
        }
    }
    Arc::new(env)
});

/// One compiled rule.
#[derive(Clone)]
pub(super) struct CompiledRule {
    source: String,
    program: Arc<Program>,
    message: Option<String>,
    message_program: Option<Arc<Program>>,
    field_path: Option<String>,
    reason: &'static str,
    /// Whether the rule speaks of the old state, and so of changes only.
    is_transition: bool,
    /// Whether the old state is optional to the rule, which then also runs where there is none.
    has_optional_old: bool,
}

impl fmt::Debug for CompiledRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.source).finish()
    }
}

/// The name under which rules call our own `matches`: the standard library's cannot be replaced.
const MATCHES: &str = "matchesKept";

/// The rule with calls of the method `matches` renamed; what stands in quotes is left alone.
fn with_kept_patterns(source: &str) -> String {
    const CALL: &str = ".matches(";
    let mut out = String::with_capacity(source.len());
    let mut quote = None;
    let mut rest = source;
    while let Some(next) = rest.chars().next() {
        if quote.is_none() && rest.starts_with(CALL) {
            out.push('.');
            out.push_str(MATCHES);
            out.push('(');
            rest = &rest[CALL.len()..];
            continue;
        }
        let is_escaping = quote.is_some() && next == '\\';
        match (quote, next) {
            (None, '\'' | '"') => quote = Some(next),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        let taken = if is_escaping { 2 } else { 1 };
        let end = rest.char_indices().nth(taken).map_or(rest.len(), |it| it.0);
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

fn compile(source: &str) -> Result<Arc<Program>, String> {
    let program = ENVIRONMENT.compile(&with_kept_patterns(source));
    program
        .map(Arc::new)
        .map_err(|error| format!("compilation failed: {source}: {error}"))
}

impl CompiledRule {
    /// Compiles an entry of `x-kubernetes-validations`.
    pub(super) fn compile(entry: &Value) -> Result<Self, String> {
        let source = entry["rule"].as_str().unwrap_or_default().to_owned();
        let message_program = entry["messageExpression"]
            .as_str()
            .map(compile)
            .transpose()?;
        Ok(Self {
            program: compile(&source)?,
            message: entry["message"].as_str().map(|m| m.trim().to_owned()),
            message_program,
            field_path: entry["fieldPath"].as_str().map(str::to_owned),
            reason: match entry["reason"].as_str() {
                Some("FieldValueRequired") => "FieldValueRequired",
                Some("FieldValueForbidden") => "FieldValueForbidden",
                Some("FieldValueDuplicate") => "FieldValueDuplicate",
                _ => "FieldValueInvalid",
            },
            is_transition: source.contains("oldSelf"),
            has_optional_old: entry["optionalOldSelf"].as_bool() == Some(true),
            source,
        })
    }

    fn refusal(&self, context: &Context<'_, '_>) -> String {
        let computed = self
            .message_program
            .as_ref()
            .and_then(|p| p.execute(context).ok());
        if let Some(CelValue::String(text)) = computed {
            return text.to_string();
        }
        self.message
            .clone()
            .unwrap_or_else(|| format!("failed rule: {}", self.source))
    }

    fn error(&self, kind: Option<ValueType>, path: &str, detail: &str) -> FieldError {
        let field = match &self.field_path {
            Some(below) => format!("{path}{below}").trim_start_matches('.').to_owned(),
            None => path.to_owned(),
        };
        let shown: Value = kind.map_or("object", ValueType::as_str).into();
        match self.reason {
            "FieldValueRequired" => FieldError::required(field, detail),
            "FieldValueForbidden" => FieldError::forbidden(field, detail),
            "FieldValueDuplicate" => FieldError::duplicate(field, &shown),
            _ => FieldError::invalid(field, &shown, detail),
        }
    }
}

/// Runs the rules of a schema on a value.
pub(super) fn run(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if schema.rules.is_empty() {
        return;
    }
    let old_self = || old.map(|old| to_cel(Some(schema), old));
    let plain = context(to_cel(Some(schema), value), old_self());
    let has_optional = schema.rules.iter().any(|rule| rule.has_optional_old);
    let optional = has_optional.then(|| {
        let old = old_self().map_or_else(OptionalValue::none, OptionalValue::of);
        let old = CelValue::Opaque(Arc::new(old));
        context(to_cel(Some(schema), value), Some(old))
    });
    for rule in &schema.rules {
        if rule.is_transition && old.is_none() && !rule.has_optional_old {
            continue;
        }
        let optional = optional.as_ref().filter(|_| rule.has_optional_old);
        let context = optional.unwrap_or(&plain);
        match rule.program.execute(context) {
            Ok(CelValue::Bool(true)) => {}
            Ok(_) => errors.push(rule.error(schema.kind, path, &rule.refusal(context))),
            Err(error) => {
                let detail = format!("rule evaluation error: {error}: {}", rule.source);
                errors.push(rule.error(schema.kind, path, &detail));
            }
        }
    }
}

/// What a rule may speak of.
fn context(value: CelValue, old: Option<CelValue>) -> Context<'static, 'static> {
    let mut context = Context::with_env(ENVIRONMENT.clone());
    let declared = [
        context.add_function("find", find),
        context.add_function(MATCHES, matches),
    ];
    for error in declared.into_iter().filter_map(Result::err) {
        tracing::error!(%error, "a CEL function was refused");
    }
    context.add_variable_from_value("self", value);
    if let Some(old) = old {
        context.add_variable_from_value("oldSelf", old);
    }
    context
}

/// `'abc 123'.find('[0-9]+')`: the first match, or the empty text.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature CEL's registry asks for"
)]
fn find(This(text): This<Arc<String>>, wanted: Arc<String>) -> CelValue {
    let found = pattern(&wanted)
        .ok()
        .and_then(|r| r.find(&text).map(|m| m.as_str().to_owned()));
    found.unwrap_or_default().into()
}

/// `'abc 123'.matches('[0-9]+')`: whether the pattern occurs.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature CEL's registry asks for"
)]
fn matches(This(text): This<Arc<String>>, wanted: Arc<String>) -> Result<CelValue, ExecutionError> {
    let compiled = pattern(&wanted).map_err(|error| {
        let message = format!("'{wanted}' not a valid regex:\n{error}");
        ExecutionError::function_error("matches", message)
    })?;
    Ok(CelValue::Bool(compiled.is_match(&text)))
}

/// The value as CEL sees it; the schema tells integers from other numbers.
fn to_cel(schema: Option<&Schema>, value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Number(number) => {
            let is_float = schema.is_some_and(|s| s.kind == Some(ValueType::Number));
            match number.as_i64() {
                Some(whole) if !is_float => CelValue::Int(whole),
                _ => CelValue::Float(number.as_f64().unwrap_or_default()),
            }
        }
        Value::Array(items) => {
            let inner = schema.and_then(Schema::item);
            CelValue::List(Arc::new(
                items.iter().map(|item| to_cel(inner, item)).collect(),
            ))
        }
        Value::Object(fields) => {
            let entries =
                fields
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(name, value)| {
                        let inner = schema.and_then(|s| s.field(name));
                        (Key::String(Arc::new(name.clone())), to_cel(inner, value))
                    });
            CelValue::Map(Map {
                map: Arc::new(entries.collect::<HashMap<_, _>>()),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_matches_are_renamed_and_quoted_text_is_not() {
        let cases = [
            ("self.matches('^a')", "self.matchesKept('^a')"),
            ("'.matches('.size() > 0", "'.matches('.size() > 0"),
            (r"'it\'s .matches(' == x", r"'it\'s .matches(' == x"),
            (
                "self.all(x, !x.matches(\"'\") && x.matches('ä.matches('))",
                "self.all(x, !x.matchesKept(\"'\") && x.matchesKept('ä.matches('))",
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(with_kept_patterns(source), expected);
        }
    }
}
