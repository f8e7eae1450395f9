//! DELETE: one object, or all that are selected.

use crate::object_key::NamespacedName;
use crate::request::answer::{ApiResponse, answer_json};
use crate::request::routes::resource_request::ResourceRequest;
use crate::request::selection;
use crate::resource::Resource;
use crate::status::StatusError;
use crate::write::options::{DeleteOptions, parse_delete_options, parse_propagation};
use serde_json::{Value, json};

impl ResourceRequest<'_> {
    pub(super) fn delete(&self) -> Result<ApiResponse, StatusError> {
        let body = if self.body.is_empty() {
            Value::Null
        } else {
            self.object()?
        };
        let mut options = parse_delete_options(&body)?;
        options.dry_run |= self.query.is_dry_run("DeleteOptions")?;
        if let Ok(seconds) = self.query.get("gracePeriodSeconds").parse() {
            options.grace_period_seconds = Some(seconds);
        }
        match self.query.get("propagationPolicy") {
            "" => {}
            policy => options.propagation = parse_propagation(policy)?,
        }
        let kind = &self.target.kind;
        if !self.target.subresource.is_empty() {
            return Err(StatusError::method_not_allowed());
        }
        if self.target.name.is_empty() {
            return self.delete_collection(&options);
        }
        let key = self.key();
        let (last, is_gone) = self.server.with(|store| {
            let last = store.delete(kind, &key, &options)?;
            Ok::<_, StatusError>((last, !store.contains(&kind.resource, &key)))
        })?;
        if !is_gone || kind.resource == Resource::PODS {
            return Ok(self.answer_object(200, &last, &[]));
        }
        Ok(answer_json(
            200,
            &json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {
                    "name": key.name, "group": kind.group, "kind": kind.resource.plural,
                    "uid": last["metadata"]["uid"],
                },
            }),
        ))
    }

    fn delete_collection(&self, options: &DeleteOptions) -> Result<ApiResponse, StatusError> {
        let selection = selection(&self.target, &self.query)?;
        let kind = &self.target.kind;
        let deleted = self.server.with(|store| {
            let chosen: Vec<NamespacedName> = store
                .iter_after(&kind.resource, &selection, None)
                .filter(|(_, stored)| {
                    selection.is_by_namespace() || stored.selected(&selection).is_some()
                })
                .map(|(key, _)| key.clone())
                .collect();
            // An object that went with an earlier one of the list is deleted, too.
            chosen
                .iter()
                .filter_map(|key| store.delete(kind, key, options).ok())
                .collect::<Vec<_>>()
        });
        let metadata = json!({"resourceVersion": self.server.revision().to_string()});
        Ok(self.answer_list(&deleted, &metadata))
    }
}
