//! A request on a resource, parsed; what its verbs do with it is in the files beside.

use crate::direct::ApiServer;
use crate::object_key::ObjectKey;
use crate::protobuf;
use crate::request::{Query, Shape, Target};
use crate::schema::unknown;
use crate::status::Status;
use crate::write_options::{Part, WriteOptions};
use serde_json::Value;

/// A request on a resource: what it means, how it wants to be answered, and its body.
pub(super) struct ResourceRequest<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) query: Query,
    pub(super) shape: Shape,
    pub(super) content_type: &'a str,
    pub(super) body: &'a [u8],
    pub(super) target: Target,
}

impl ResourceRequest<'_> {
    pub(super) fn key(&self) -> ObjectKey {
        let namespace = if self.target.kind.is_namespaced {
            self.target.namespace.as_str()
        } else {
            ""
        };
        ObjectKey::new(namespace, self.target.name.as_str())
    }

    pub(super) fn options(&self) -> WriteOptions {
        let part = if self.target.subresource == "status" {
            Part::Status
        } else {
            Part::Main
        };
        let manager = self.query.get("fieldManager");
        WriteOptions {
            part,
            dry_run: self.query.is_dry_run(),
            field_manager: (!manager.is_empty()).then(|| manager.to_owned()),
            ..WriteOptions::default()
        }
    }

    /// The object in the body, JSON or YAML.
    pub(super) fn object(&self) -> Result<Value, Status> {
        if self.content_type.contains("protobuf") {
            return protobuf::decode(self.body);
        }
        match serde_json::from_slice(self.body) {
            Ok(value) => Ok(value),
            Err(_) if self.content_type.contains("yaml") => serde_saphyr::from_slice(self.body)
                .map_err(|e| Status::bad_request(format!("error decoding the body: {e}"))),
            Err(error) => Err(Status::bad_request(format!(
                "error decoding the body: {error}"
            ))),
        }
    }

    /// Refuses or reports fields that the kind does not have, as `fieldValidation` asks.
    pub(super) fn check_fields(&self, object: &Value) -> Result<Vec<String>, Status> {
        let kind = &self.target.kind;
        if let Some(problem) = unknown::mistyped(kind, object) {
            return Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {problem}",
                kind.kind, self.target.version, kind.kind
            )));
        }
        let mode = self.query.get("fieldValidation");
        if mode == "Ignore" || mode.is_empty() {
            return Ok(Vec::new());
        }
        let found = unknown::fields(&self.target.kind, &self.target.version, object);
        if mode == "Strict" && !found.is_empty() {
            let list = found.join(", ");
            return Err(Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a \
                {}: strict decoding error: {list}",
                self.target.kind.kind, self.target.version, self.target.kind.kind
            )));
        }
        Ok(found)
    }
}
