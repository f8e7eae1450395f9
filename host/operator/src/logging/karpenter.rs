//! A log line as Karpenter's: flat JSON with `level`, `time`, `logger`, `message` and `commit`, then keys with dashes,
//! and objects by kind as `"NodeClaim": {"name": "..."}`.
//!
//! It knows only DEBUG, INFO and ERROR. Answers to `pkg/operator/logging/logging.go` and to what controller-runtime's
//! `zap` makes of object references.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::span_fields::{SpanFields, fields_of};
use crate::build_info::COMMIT;

/// The one key with a capital that is a text: several names.
const NAMES_OF_PODS: &str = "Pods";
/// Keys whose texts are JSON, which is put in as it is.
const OBJECTS: [&str; 4] = [
    "requests",
    "allocatable",
    "disrupted_nodes",
    "replacement_nodes",
];

/// Formats one line.
#[derive(Debug)]
pub(super) struct KarpenterLine;

impl<S> FormatEvent<S, SpanFields> for KarpenterLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, SpanFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut told = LineFields::default();
        event.record(&mut told);
        let mut line = Map::new();
        line.insert("level".to_owned(), json!(level(*metadata.level())));
        line.insert("time".to_owned(), json!(time(Timestamp::now())));
        line.insert("logger".to_owned(), json!("controller"));
        if *metadata.level() >= Level::DEBUG
            && let (Some(file), Some(number)) = (metadata.file(), metadata.line())
        {
            line.insert("caller".to_owned(), json!(format!("{file}:{number}")));
        }
        line.insert("message".to_owned(), json!(told.message));
        line.insert("commit".to_owned(), json!(COMMIT));
        // What is at work: its controller, its object and the number of the reconcile.
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let written = extensions.get::<FormattedFields<SpanFields>>();
            let fields = fields_of(written.map_or("", |it| it));
            line.extend(fields.map(|(name, value)| (name.to_owned(), json!(value))));
        }
        for (key, value) in told.fields {
            line.insert(key, value);
        }
        if let Some((kind, object)) = object_at_work(&line) {
            line.entry(kind).or_insert(object);
        }
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
}

/// The object of a reconcile, which stands under its kind as well as by itself.
fn object_at_work(line: &Map<String, Value>) -> Option<(String, Value)> {
    let text = |key: &str| {
        line.get(key)
            .and_then(Value::as_str)
            .filter(|it| !it.is_empty())
    };
    let (kind, name) = (text("controllerKind")?, text("name")?);
    let object = match text("namespace") {
        Some(namespace) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    };
    Some((kind.to_owned(), object))
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR | Level::WARN => "ERROR",
        Level::INFO => "INFO",
        _ => "DEBUG",
    }
}

/// To the millisecond.
fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// What an event says, in order.
#[derive(Debug, Default)]
struct LineFields {
    message: String,
    fields: Vec<(String, Value)>,
}

impl LineFields {
    fn add(&mut self, field: &Field, value: Value) {
        let name = field.name();
        if name == "message" {
            self.message = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            return;
        }
        // Kinds are written as they are; what they name is an object.
        let is_kind = name.starts_with(|it: char| it.is_ascii_uppercase()) && name != NAMES_OF_PODS;
        let entry = match value {
            Value::String(text) if is_kind => (name.to_owned(), reference(&text)),
            Value::String(text) if OBJECTS.contains(&name) => {
                let object = serde_json::from_str(&text);
                (
                    name.replace('_', "-"),
                    object.unwrap_or(Value::String(text)),
                )
            }
            value => (name.replace('_', "-"), value),
        };
        self.fields.push(entry);
    }
}

fn reference(name: &str) -> Value {
    match name.split_once('/') {
        Some((namespace, name)) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    }
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, json!(value));
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::logged_lines::LoggedLines;

    /// What is logged meanwhile, line by line, without the time.
    fn logged(work: impl FnOnce()) -> Vec<Value> {
        let kept = LoggedLines::default();
        let writer = kept.clone();
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(SpanFields)
            .event_format(KarpenterLine)
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, work);
        let text = kept.text();
        let lines = text.lines().map(|line| {
            let mut line = serde_json::from_str::<Value>(line).unwrap();
            let time = line.as_object_mut().unwrap().remove("time").unwrap();
            let time = time.as_str().unwrap();
            assert!(time.parse::<Timestamp>().is_ok(), "{time}");
            line
        });
        lines.collect()
    }

    #[test]
    fn a_line_is_flat_with_keys_as_karpenter_has_them() {
        let lines = logged(|| {
            let name = "default-abc";
            let span = tracing::info_span!(
                "reconcile",
                controller = "nodeclaim.lifecycle",
                reconcileID = "1"
            );
            let _at_work = span.enter();
            tracing::info!(NodeClaim = %name, Pod = "shop/web-1", provider_id = "aws:///a/i-1", pods = 3, "launched nodeclaim");
            tracing::warn!(error = "no answer", "trying again");
        });
        let wanted = json!({
            "level": "INFO", "logger": "controller", "commit": COMMIT, "message": "launched nodeclaim",
            "NodeClaim": {"name": "default-abc"}, "Pod": {"name": "web-1", "namespace": "shop"},
            "provider-id": "aws:///a/i-1", "pods": 3,
            "controller": "nodeclaim.lifecycle", "reconcileID": "1",
        });
        assert_eq!(lines[0], wanted);
        assert_eq!(lines[1]["level"], "ERROR");
    }

    #[test]
    fn a_reconcile_names_its_object_and_values_are_what_karpenter_makes_them() {
        let lines = logged(|| {
            let controller = tracing::error_span!(
                "controller",
                controller = "nodeclaim.lifecycle",
                controllerGroup = "karpenter.sh",
                controllerKind = "NodeClaim"
            );
            let reconcile = tracing::error_span!(
                parent: &controller,
                "reconcile",
                namespace = "",
                name = "default-abc",
                reconcileID = "7"
            );
            reconcile.in_scope(|| {
                tracing::info!(
                    allocatable = r#"{"cpu": "4"}"#,
                    Pods = "shop/web-1, shop/web-2 and 3 other(s)",
                    requests = "no JSON",
                    "told"
                );
            });
        });
        let wanted = json!({
            "level": "INFO", "logger": "controller", "commit": COMMIT, "message": "told",
            "controller": "nodeclaim.lifecycle", "controllerGroup": "karpenter.sh", "controllerKind": "NodeClaim",
            "namespace": "", "name": "default-abc", "reconcileID": "7", "NodeClaim": {"name": "default-abc"},
            "allocatable": {"cpu": "4"}, "Pods": "shop/web-1, shop/web-2 and 3 other(s)", "requests": "no JSON",
        });
        assert_eq!(lines, [wanted]);
    }

    #[test]
    fn each_round_of_a_loop_has_its_number() {
        let lines = logged(|| {
            let looping = tracing::error_span!(
                "loop",
                controller = "provisioner",
                reconcileID = tracing::field::Empty
            );
            looping.in_scope(|| {
                tracing::info!("before");
                for round in ["1", "2"] {
                    tracing::Span::current().record("reconcileID", round);
                    tracing::info!("in it");
                }
            });
        });
        let told: Vec<_> = lines
            .iter()
            .map(|it| (&it["controller"], &it["reconcileID"]))
            .collect();
        let controller = json!("provisioner");
        let (first, second) = (json!("1"), json!("2"));
        assert_eq!(
            told,
            [
                (&controller, &Value::Null),
                (&controller, &first),
                (&controller, &second)
            ]
        );
    }
}
