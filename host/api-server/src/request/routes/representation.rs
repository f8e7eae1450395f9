//! Objects and lists in the shape that a request accepts: whole, as a table, or their metadata alone.

use crate::request::Representation;
use crate::request::answer::{ApiResponse, answer_bytes, answer_json};
use crate::request::routes::resource_request::ResourceRequest;
use crate::served::table;
use http::header;
use serde_json::{Value, json};
use std::sync::Arc;

impl ResourceRequest<'_> {
    pub(super) fn answer_object(
        &self,
        code: u16,
        object: &Value,
        warnings: &[String],
    ) -> ApiResponse {
        let wire = self.target.kind.to_wire(object, &self.target.version);
        let mut answer = match self.shape {
            Representation::Full => answer_json(code, &*wire),
            Representation::Partial => answer_json(code, &table::partial(&wire)),
            Representation::Table => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                answer_json(code, &self.view().render(&[wire.as_ref()], &metadata))
            }
        };
        for warning in warnings {
            let text = format!("299 - {warning:?}");
            if let Ok(value) = header::HeaderValue::from_str(&text) {
                answer.headers_mut().append(header::WARNING, value);
            }
        }
        answer
    }

    fn view(&self) -> table::TableView<'_> {
        table::TableView {
            kind: &self.target.kind,
            version: &self.target.version,
            now: self.server.with(|store| store.now()),
            include_object: self.query.get("includeObject"),
        }
    }

    pub(super) fn answer_list(&self, items: &[Arc<Value>], metadata: &Value) -> ApiResponse {
        let kind = &self.target.kind;
        let wire: Vec<_> = items
            .iter()
            .map(|o| kind.to_wire(o, &self.target.version))
            .collect();
        match self.shape {
            Representation::Table => {
                let rows: Vec<&Value> = wire.iter().map(AsRef::as_ref).collect();
                answer_json(200, &self.view().render(&rows, metadata))
            }
            Representation::Partial => {
                let items: Vec<Value> = wire.iter().map(|o| table::partial(o)).collect();
                answer_json(
                    200,
                    &json!({
                        "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                        "metadata": metadata, "items": items,
                    }),
                )
            }
            Representation::Full => {
                // Written by hand, so that thousands of objects are not copied into one value first.
                let head = json!({
                    "kind": kind.list_kind, "apiVersion": kind.api_version(&self.target.version),
                    "metadata": metadata,
                });
                let mut bytes = head.to_string().into_bytes();
                bytes.pop();
                bytes.extend_from_slice(b",\"items\":[");
                for (at, object) in wire.iter().enumerate() {
                    if at > 0 {
                        bytes.push(b',');
                    }
                    // Writing JSON into memory does not fail.
                    let _ = serde_json::to_writer(&mut bytes, &**object);
                }
                bytes.extend_from_slice(b"]}");
                answer_bytes(200, "application/json", bytes)
            }
        }
    }
}
