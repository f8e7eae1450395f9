//! Structural schemas of custom resources: pruning, defaulting, validation and CEL rules.

pub(super) mod definition;

use serde_json::Value;

use super::status::FieldError;

/// A compiled schema.
#[derive(Debug, Clone, Default)]
pub(super) struct Schema {}

/// A column of server-side tables.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) definition: Value,
}

/// Schema and columns of one version of a custom resource.
#[derive(Debug, Clone)]
pub struct CustomVersion {
    /// The schema as compiled.
    pub(super) schema: Schema,
    /// The schema as written.
    pub(super) source: Value,
    /// Columns of server-side tables.
    pub(super) columns: Vec<Column>,
}

/// Prunes and defaults.
pub(super) fn prepare(_schema: &Schema, _object: &mut Value) {}

/// Validates.
pub(super) fn validate(_schema: &Schema, _object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}
