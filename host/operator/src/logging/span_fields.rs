//! What spans say of themselves, put down as it comes and read again where a line is written: there is a span for every
//! reconcile, and a line for few.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FormatFields, FormattedFields};

/// ASCII's unit separator, between the name of a field and its value.
const AFTER_NAME: char = '\u{1f}';
/// ASCII's record separator, behind each value.
const AFTER_VALUE: char = '\u{1e}';

/// Writes the fields of spans for [`fields_of`].
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanFields;

/// Names and values of a span, as they were recorded.
pub(super) fn fields_of(written: &str) -> impl Iterator<Item = (&str, &str)> {
    written
        .split_terminator(AFTER_VALUE)
        .filter_map(|it| it.split_once(AFTER_NAME))
}

fn write_field(writer: &mut impl fmt::Write, name: &str, value: impl fmt::Display) -> fmt::Result {
    write!(writer, "{name}{AFTER_NAME}{value}{AFTER_VALUE}")
}

impl<'w> FormatFields<'w> for SpanFields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut entry = FieldEntry {
            writer,
            result: Ok(()),
        };
        fields.record(&mut entry);
        entry.result
    }

    /// What is recorded a second time takes the place of what was: a span of a loop lives as long as the process.
    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        added: &Record<'_>,
    ) -> fmt::Result {
        let mut again = FormattedFields::<Self>::new(String::new());
        self.format_fields(again.as_writer(), added)?;
        let mut written = String::new();
        for (name, value) in fields_of(&current.fields) {
            if fields_of(&again.fields).all(|(it, _)| it != name) {
                write_field(&mut written, name, value)?;
            }
        }
        written.push_str(&again.fields);
        current.fields = written;
        Ok(())
    }
}

struct FieldEntry<'w> {
    writer: Writer<'w>,
    result: fmt::Result,
}

impl FieldEntry<'_> {
    fn write(&mut self, field: &Field, value: impl fmt::Display) {
        let result = write_field(&mut self.writer, field.name(), value);
        self.result = self.result.and(result);
    }
}

impl Visit for FieldEntry<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.write(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write(field, format_args!("{value:?}"));
    }
}
