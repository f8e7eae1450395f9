//! The settings that a component says it takes: the part of JSON Schema that settings need, read once, so that a
//! configuration is held to it before the policy sees it.
//!
//! Read are `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`, `const`, `minimum`, `maximum`,
//! `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`, `pattern`, `minItems`, `maxItems`, and for people
//! `title`, `description` and `default`. Other words are ignored, as JSON Schema says; of those that would refuse
//! something there is a note. A schema comes from whoever wrote the policy, so its size, its depth (that of the JSON
//! reader) and its patterns are bounded, and what checking takes is counted (`check.rs`).

mod check;
mod node;
mod reader;
mod settings;

use serde_json::Value;

use crate::guest::limits::short;

use node::SchemaNode;
use reader::SchemaReader;
pub use settings::Setting;

/// Longest schema; it is read whole, since a part of one is none.
pub(crate) const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// Why a text is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "config-schema{place}: {fault}; mend the schema of the component, or leave it empty to check nothing"
)]
pub struct SchemaError {
    /// A colon and the JSON pointer of what is wrong; empty where it is the whole.
    place: String,
    fault: String,
}

/// Schema that a configuration must meet.
#[derive(Debug, Clone)]
pub struct ConfigSchema {
    root: SchemaNode,
    /// Parts of it that are not enforced, a sentence each.
    notes: Vec<String>,
}

impl ConfigSchema {
    /// Reads a schema; `None` where the text is empty, which says nothing of the settings.
    pub fn parse(text: &str) -> Result<Option<Self>, SchemaError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let whole = |fault: String| SchemaError {
            place: String::new(),
            fault,
        };
        if text.len() > SCHEMA_BYTES_MAX {
            let bytes = text.len();
            return Err(whole(format!(
                "has {bytes} bytes and may have {SCHEMA_BYTES_MAX}"
            )));
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|error| whole(short(format!("is no JSON: {error}"))))?;
        let mut reader = SchemaReader::default();
        let root = reader.node(&value, &mut Vec::new())?;
        Ok(Some(Self {
            root,
            notes: reader.notes,
        }))
    }

    /// Parts of it that are not enforced, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
