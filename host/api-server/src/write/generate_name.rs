//! Names for objects that come with the stem of one: `metadata.generateName`.

use crate::object_key::NamespacedName;
use crate::served::kinds::ServedKind;
use crate::status::{FieldError, StatusError};
use crate::store::Store;
use crate::write::metadata::metadata;
use serde_json::Value;

impl Store {
    pub(super) fn name_new_object(
        &mut self,
        kind: &ServedKind,
        object: &mut Value,
    ) -> Result<(), StatusError> {
        let fields = metadata(object)?;
        let name = fields
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !name.is_empty() {
            return Ok(());
        }
        let stem = fields
            .get("generateName")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if stem.is_empty() {
            let error = FieldError::required("metadata.name", "name or generateName is required");
            return Err(StatusError::invalid(&kind.group, &kind.kind, "", &[error]));
        }
        let stem: String = stem.chars().take(58).collect();
        let mut key = NamespacedName::of(object);
        loop {
            key.name = format!("{stem}{}", self.names.suffix());
            if !self.contains(&kind.resource, &key) {
                break;
            }
        }
        metadata(object)?.insert("name".to_owned(), key.name.into());
        Ok(())
    }
}
