//! PUT: an object or a part of it, replaced.

use crate::answer::{ApiResponse, answer_json};
use crate::routes::resource_request::ResourceRequest;
use crate::scale;
use crate::status::StatusError;
use serde_json::json;

impl ResourceRequest<'_> {
    pub(super) fn put(&self) -> Result<ApiResponse, StatusError> {
        let (kind, key, options) = (&self.target.kind, self.key(), self.options());
        if self.target.name.is_empty() {
            return Err(StatusError::method_not_allowed());
        }
        let object = self.object()?;
        match self.target.subresource.as_str() {
            "scale" => {
                let scale = self
                    .server
                    .with(|store| scale::set_from(store, kind, &key, &object, &options))?;
                Ok(answer_json(200, &scale))
            }
            "" | "status" | "finalize" | "approval" => {
                let warnings = self.check_fields(&object)?;
                let given = &object["metadata"]["resourceVersion"];
                if kind.is_custom() && given.as_str().is_none_or(str::is_empty) {
                    let error = crate::status::FieldError::invalid(
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
            _ => Err(StatusError::no_such_resource()),
        }
    }
}
