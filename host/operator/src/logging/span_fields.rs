//! What spans carry, written down when they begin: pairs of JSON, each with a comma behind it.
//!
//! A span begins with every reconcile, most of which log nothing. So the pairs are written straight and parsed by the
//! line that needs them; tracing's own `JsonFields` makes a map of each and writes that.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FormatFields, FormattedFields};

/// Writes fields of spans.
#[derive(Debug)]
pub(super) struct SpanFields;

/// What was written, as values.
pub(super) fn parsed(pairs: &str) -> Map<String, Value> {
    let object = format!("{{{}}}", pairs.trim_end_matches(','));
    serde_json::from_str(&object).unwrap_or_default()
}

impl<'writer> FormatFields<'writer> for SpanFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut pairs = PairWriter {
            writer,
            outcome: Ok(()),
        };
        fields.record(&mut pairs);
        pairs.outcome
    }

    /// What is said again takes the place of what was said before, so that a span that never ends does not grow.
    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        let mut added = String::new();
        let mut pairs = PairWriter {
            writer: Writer::new(&mut added),
            outcome: Ok(()),
        };
        fields.record(&mut pairs);
        pairs.outcome?;
        let mut all = parsed(&current.fields);
        all.extend(parsed(&added));
        current.fields.clear();
        for (key, value) in &all {
            write!(current.fields, "{}:{value},", Value::from(key.as_str()))?;
        }
        Ok(())
    }
}

/// Writes one field after the other.
struct PairWriter<'writer> {
    writer: Writer<'writer>,
    outcome: fmt::Result,
}

impl PairWriter<'_> {
    fn write(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        if self.outcome.is_ok() {
            self.outcome = write!(self.writer, "\"{}\":{value},", field.name());
        }
    }
}

impl Visit for PairWriter<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |it: u8| it >= b' ' && it != b'"' && it != b'\\';
        if value.bytes().all(is_plain) {
            self.write(field, format_args!("\"{value}\""));
        } else {
            self.write(field, format_args!("{}", Value::from(value)));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write(field, format_args!("{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write(field, format_args!("{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write(field, format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tracing::Subscriber;
    use tracing::span::Id;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};
    use tracing_subscriber::registry::LookupSpan;

    use super::*;

    /// Keeps what a span carries at its end.
    struct AtItsEnd(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for AtItsEnd {
        fn on_close(&self, id: Id, context: Context<'_, S>) {
            let span = context.span(&id).unwrap();
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<SpanFields>>().unwrap();
            self.0.lock().unwrap().push(fields.fields.clone());
        }
    }

    #[test]
    fn fields_are_pairs_of_json_and_what_is_said_again_is_replaced() {
        let ends = Arc::new(Mutex::new(Vec::new()));
        let lines = tracing_subscriber::fmt::layer()
            .fmt_fields(SpanFields)
            .with_writer(std::io::sink);
        let subscriber = tracing_subscriber::registry()
            .with(AtItsEnd(Arc::clone(&ends)))
            .with(lines);
        tracing::subscriber::with_default(subscriber, || {
            let text = "a \"b\"\\\n";
            let number = -3;
            let span =
                tracing::info_span!("a", text, number, on = true, round = tracing::field::Empty);
            for round in 0..100_u64 {
                span.record("round", round);
            }
        });
        let ends = ends.lock().unwrap();
        assert_eq!(
            Value::from(parsed(&ends[0])),
            json!({"text": "a \"b\"\\\n", "number": -3, "on": true, "round": 99})
        );
        assert!(ends[0].len() < 100, "{}", ends[0]);
        assert!(parsed("").is_empty());
    }
}
