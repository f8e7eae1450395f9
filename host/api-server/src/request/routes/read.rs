//! GET: an object, a subresource, a list, page by page.

use crate::object_key::NamespacedName;
use crate::request::answer::{ApiResponse, answer_bytes, answer_json};
use crate::request::routes::continue_token::Resume;
use crate::request::routes::resource_request::ResourceRequest;
use crate::request::selection;
use crate::request::watch_stream;
use crate::resource::Resource;
use crate::status::StatusError;
use crate::write::scale;
use serde_json::{Value, json};
use std::sync::Arc;

impl ResourceRequest<'_> {
    pub(super) fn read(&self) -> Result<ApiResponse, StatusError> {
        if self.query.is_true("watch") {
            return watch_stream::start(self.server, self.target.clone(), self.shape, &self.query);
        }
        if self.target.name.is_empty() {
            return self.list();
        }
        let key = self.key();
        let object = self
            .server
            .get(&self.target.kind.resource, &key.namespace, &key.name)?;
        Ok(self.answer_object(200, &object, &[]))
    }

    fn list(&self) -> Result<ApiResponse, StatusError> {
        let selection = selection(&self.target, &self.query)?;
        let limit: usize = self.query.get("limit").parse().unwrap_or(0);
        let resume = Resume::decode(self.query.get("continue"))?;
        let resource = &self.target.kind.resource;
        let page = self.server.with(|store| -> Result<Page, StatusError> {
            let revision = match &resume {
                Some(resume) => {
                    store.check_remembered(resource, resume.revision)?;
                    resume.revision
                }
                None => store.revision(),
            };
            let after = resume.as_ref().map(|r| &r.after);
            let mut rest = store.iter_after(resource, &selection, after);
            let most = if limit == 0 { usize::MAX } else { limit };
            let selected = rest
                .by_ref()
                .filter_map(|(key, stored)| Some((key, stored.selected(&selection)?)));
            let taken: Vec<_> = selected.take(most).collect();
            // Under a selector only whether there are more is told.
            let remaining = if selection.is_by_namespace() {
                rest.count()
            } else {
                usize::from(rest.any(|(_, stored)| stored.selected(&selection).is_some()))
            };
            let last = taken.last().map(|(key, _)| (*key).clone());
            let items = taken.into_iter().map(|(_, object)| object).collect();
            Ok(Page {
                items,
                revision,
                remaining,
                last,
            })
        })?;
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if page.remaining > 0
            && let Some(after) = page.last
        {
            metadata["continue"] = Resume {
                revision: page.revision,
                after,
            }
            .encode()
            .into();
            // How many more are selected is not counted, as in a cluster.
            if selection.is_by_namespace() {
                metadata["remainingItemCount"] = page.remaining.into();
            }
        }
        Ok(self.answer_list(&page.items, &metadata))
    }

    pub(super) fn read_subresource(&self) -> Result<ApiResponse, StatusError> {
        let key = self.key();
        match self.target.subresource.as_str() {
            "status" if self.target.kind.has_status => self.read(),
            "scale" => {
                let scale = self
                    .server
                    .with(|store| scale::get(store, &self.target.kind, &key))?;
                Ok(answer_json(200, &scale))
            }
            "log" if self.target.kind.resource == Resource::PODS => {
                let pod = self
                    .server
                    .get(&Resource::PODS, &key.namespace, &key.name)?;
                let node = pod["spec"]["nodeName"].as_str().unwrap_or("no node");
                let text = format!("simulated pod {}/{} on {node}\n", key.namespace, key.name);
                Ok(answer_bytes(200, "text/plain", text.into_bytes()))
            }
            _ => Err(StatusError::no_such_resource()),
        }
    }
}

struct Page {
    items: Vec<Arc<Value>>,
    revision: u64,
    remaining: usize,
    last: Option<NamespacedName>,
}
