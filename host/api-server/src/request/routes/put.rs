//! PUT: an object or a part of it, replaced.

use crate::request::answer::{ApiResponse, answer_json};
use crate::request::routes::resource_request::ResourceRequest;
use crate::status::{FieldError, StatusError};
use crate::write::scale;
use serde_json::json;

impl ResourceRequest<'_> {
    pub(super) fn put(&self) -> Result<ApiResponse, StatusError> {
        let (kind, key) = (&self.target.kind, self.key());
        let options = self.options("UpdateOptions")?;
        if self.target.name.is_empty() {
            return Err(StatusError::method_not_allowed());
        }
        if !self.has_subresource() {
            return Err(StatusError::no_such_resource());
        }
        let object = self.object()?;
        if self.target.subresource == "scale" {
            let scale = self
                .server
                .with(|store| scale::set_from(store, kind, &key, &object, &options))?;
            return Ok(answer_json(200, &scale));
        }
        let warnings = self.check_fields(&object)?;
        let given = &object["metadata"]["resourceVersion"];
        if kind.is_custom() && given.as_str().is_none_or(str::is_empty) {
            let error = FieldError::invalid(
                "metadata.resourceVersion",
                &json!(0),
                "must be specified for an update",
            );
            return Err(StatusError::invalid(
                &kind.group,
                &kind.kind,
                &key.name,
                &[error],
            ));
        }
        let stored = self
            .server
            .with(|store| store.update(kind, &key, object, &options))?;
        Ok(self.answer_object(200, &stored, &warnings))
    }
}
