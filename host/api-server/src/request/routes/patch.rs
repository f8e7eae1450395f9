//! PATCH, of any sort.

use crate::request::answer::{ApiResponse, answer_json};
use crate::request::routes::resource_request::ResourceRequest;
use crate::served::schema::unknown;
use crate::status::StatusError;
use crate::write::options::WriteOptions;
use crate::write::patch::{self, Patch};
use crate::write::scale;

impl ResourceRequest<'_> {
    pub(super) fn patch(&self) -> Result<ApiResponse, StatusError> {
        let (kind, key) = (&self.target.kind, self.key());
        let options = self.options("PatchOptions")?;
        if !self.has_subresource() {
            return Err(StatusError::no_such_resource());
        }
        let body = self.object()?;
        let patch = match self
            .content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
        {
            "application/json-patch+json" => Patch::Json(body),
            "application/merge-patch+json" => Patch::Merge(body),
            "application/strategic-merge-patch+json" => Patch::Strategic(body),
            "application/apply-patch+yaml" | "application/apply-patch+cbor" => {
                if options.field_manager.is_none() {
                    return Err(StatusError::bad_request(
                        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: \
                         is required for apply patch",
                    ));
                }
                Patch::Apply {
                    intent: body,
                    is_forced: self.query.is_true("force"),
                }
            }
            other => return Err(StatusError::unsupported_media_type(other)),
        };
        if self.target.subresource == "scale" {
            return self.patch_scale(&patch, &options);
        }
        let warnings = match &patch {
            Patch::Json(_) => Vec::new(),
            Patch::Merge(change) | Patch::Strategic(change) => {
                if let Some(problem) = unknown::mistyped(kind, change) {
                    return Err(patch::refused(change, &problem));
                }
                self.check_unknown_fields(change)?
            }
            Patch::Apply { intent, .. } => self.check_fields(intent)?,
        };
        // Under one lock, or another's write between the two would make the answer untrue.
        let (existed, stored) = self.server.with(|store| {
            let existed = store.contains(&kind.resource, &key);
            let stored = patch::run(store, kind, &key, &patch, &options)?;
            Ok::<_, StatusError>((existed, stored))
        })?;
        Ok(self.answer_object(if existed { 200 } else { 201 }, &stored, &warnings))
    }

    fn patch_scale(
        &self,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<ApiResponse, StatusError> {
        let (kind, key) = (&self.target.kind, self.key());
        let replicas = match patch {
            Patch::Merge(value) | Patch::Strategic(value) | Patch::Apply { intent: value, .. } => {
                value["spec"]["replicas"].as_i64()
            }
            Patch::Json(operations) => operations
                .as_array()
                .into_iter()
                .flatten()
                .find(|o| o["path"].as_str() == Some("/spec/replicas"))
                .and_then(|o| o["value"].as_i64()),
        };
        let replicas = replicas
            .ok_or_else(|| StatusError::bad_request("the patch does not set spec.replicas"))?;
        let scale = self.server.with(|store| {
            let object = scale::set(store, kind, &key, replicas, options)?;
            scale::of(kind, &object)
        })?;
        Ok(answer_json(200, &scale))
    }
}
