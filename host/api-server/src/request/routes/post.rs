//! POST: objects to create, and the subresources that act: binding, eviction, token.

use crate::builtin;
use crate::request::answer::answer_success;
use crate::request::answer::{ApiResponse, answer_json};
use crate::request::routes::resource_request::ResourceRequest;
use crate::resource::Resource;
use crate::served::review;
use crate::status::StatusError;
use crate::write::eviction;
use crate::write::options::parse_delete_options;

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
                let options = self.options("CreateOptions")?;
                let stored = self
                    .server
                    .with(|store| store.create(kind, namespace, object, &options))?;
                Ok(self.answer_object(201, &stored, &warnings))
            }
            (_, "binding") if kind.resource == Resource::PODS => {
                let binding = self.object()?;
                let node = binding["target"]["name"].as_str().unwrap_or_default();
                let options = self.options("CreateOptions")?;
                self.server
                    .with(|store| builtin::pod::bind(store, &self.key(), node, &options))?;
                Ok(answer_success(201))
            }
            (name, "eviction") if kind.resource == Resource::PODS => {
                let eviction = self.object()?;
                if eviction["metadata"]["name"] != name {
                    return Err(StatusError::bad_request(
                        "name in URL does not match name in Eviction object",
                    ));
                }
                let mut options = parse_delete_options(&eviction["deleteOptions"])?;
                options.dry_run |= self.query.is_dry_run("DeleteOptions")?;
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
