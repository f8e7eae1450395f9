//! POST: objects to create, and the subresources that act: binding, eviction, token.

use crate::answer::answer_success;
use crate::answer::{ApiResponse, answer_json};
use crate::builtin;
use crate::delete_options;
use crate::eviction;
use crate::resource::Resource;
use crate::review;
use crate::routes::resource_request::ResourceRequest;
use crate::status::StatusError;

impl ResourceRequest<'_> {
    pub(super) fn post(&self) -> Result<ApiResponse, StatusError> {
        let kind = &self.target.kind;
        match (self.target.name.as_str(), self.target.subresource.as_str()) {
            ("", _) => {
                let object = self.object()?;
                let warnings = self.check_fields(&object)?;
                let namespace = self.target.namespace.as_str();
                if kind.is_namespaced
                    && namespace.is_empty()
                    && object["metadata"]["namespace"].as_str().is_none()
                {
                    return Err(StatusError::bad_request(
                        "an empty namespace may not be set during creation",
                    ));
                }
                let options = self.options();
                let stored = self
                    .server
                    .with(|store| store.create(kind, namespace, object, &options))?;
                Ok(self.answer_object(201, &stored, &warnings))
            }
            (_, "binding") if kind.resource == Resource::PODS => {
                let binding = self.object()?;
                let node = binding["target"]["name"].as_str().unwrap_or_default();
                self.server
                    .with(|store| builtin::pod::bind(store, &self.key(), node))?;
                Ok(answer_success(201))
            }
            (_, "eviction") if kind.resource == Resource::PODS => {
                let eviction = self.object()?;
                let mut options = delete_options::parse(&eviction["deleteOptions"])?;
                options.dry_run |= self.query.is_dry_run();
                self.server
                    .with(|store| eviction::evict(store, &self.key(), &options))?;
                Ok(answer_success(201))
            }
            (name, "token") if kind.resource == Resource::SERVICE_ACCOUNTS => {
                let now = self.server.with(|store| store.now());
                Ok(answer_json(201, &review::token(name, now)))
            }
            _ => Err(StatusError::method_not_allowed()),
        }
    }
}
