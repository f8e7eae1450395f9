//! A log line as Karpenter's: flat JSON with `level`, `time`, `logger`, `message` and `commit`, then keys with dashes, and
//! objects by kind as `"NodeClaim": {"name": "..."}`.
//!
//! It knows only DEBUG, INFO and ERROR. Answers to `pkg/operator/logging/logging.go` and to what controller-runtime's
//! `zap` makes of object references.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::build_info::COMMIT;

/// Formats one line.
#[derive(Debug)]
pub(super) struct KarpenterLine;

impl<S, N> FormatEvent<S, N> for KarpenterLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
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
        // What is at work: its controller and the number of the reconcile.
        for span in context.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let written = extensions.get::<FormattedFields<N>>();
            let fields = written.and_then(|it| serde_json::from_str::<Map<_, _>>(it).ok());
            line.extend(fields.unwrap_or_default());
        }
        for (key, value) in told.fields {
            line.insert(key, value);
        }
        let line = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{line}")
    }
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
        let is_kind = name.starts_with(|it: char| it.is_ascii_uppercase());
        let entry = match value {
            Value::String(text) if is_kind => (name.to_owned(), reference(&text)),
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
    use std::io::Write;
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing_subscriber::fmt::format::JsonFields;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_flat_with_keys_as_karpenter_has_them() {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(KarpenterLine)
            .fmt_fields(JsonFields::new())
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
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
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let mut lines = text
            .lines()
            .map(|it| serde_json::from_str::<Value>(it).unwrap());
        let mut line = lines.next().unwrap();
        let time = line.as_object_mut().unwrap().remove("time").unwrap();
        assert!(
            time.as_str().unwrap().parse::<Timestamp>().is_ok(),
            "{time}"
        );
        let wanted = json!({
            "level": "INFO", "logger": "controller", "commit": COMMIT, "message": "launched nodeclaim",
            "NodeClaim": {"name": "default-abc"}, "Pod": {"name": "web-1", "namespace": "shop"},
            "provider-id": "aws:///a/i-1", "pods": 3,
            "controller": "nodeclaim.lifecycle", "reconcileID": "1",
        });
        assert_eq!(line, wanted);
        assert_eq!(lines.next().unwrap()["level"], "ERROR");
    }
}
