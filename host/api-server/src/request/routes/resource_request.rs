//! A request on a resource, parsed; what its verbs do with it is in the files beside.

use crate::api_server::ApiServer;
use crate::object_key::NamespacedName;
use crate::request::protobuf;
use crate::request::{QueryParameters, Representation, Target};
use crate::resource::Resource;
use crate::served::schema::unknown;
use crate::status::StatusError;
use crate::write::options::{ObjectPart, WriteOptions};
use serde_json::Value;

/// A request on a resource: what it means, how it wants to be answered, and its body.
pub(super) struct ResourceRequest<'a> {
    pub(super) server: &'a ApiServer,
    pub(super) query: QueryParameters,
    pub(super) shape: Representation,
    pub(super) content_type: &'a str,
    pub(super) body: &'a [u8],
    pub(super) target: Target,
}

impl ResourceRequest<'_> {
    pub(super) fn key(&self) -> NamespacedName {
        let namespace = if self.target.kind.is_namespaced {
            self.target.namespace.as_str()
        } else {
            ""
        };
        NamespacedName::new(namespace, self.target.name.as_str())
    }

    /// Options of a write; `kind` is the name that they go by, such as `PatchOptions`.
    pub(super) fn options(&self, kind: &str) -> Result<WriteOptions, StatusError> {
        let part = if self.target.subresource == "status" {
            ObjectPart::Status
        } else {
            ObjectPart::Main
        };
        let manager = self.query.get("fieldManager");
        Ok(WriteOptions {
            part,
            dry_run: self.query.is_dry_run(kind)?,
            field_manager: (!manager.is_empty()).then(|| manager.to_owned()),
            ..WriteOptions::default()
        })
    }

    /// Whether the kind has that part to replace or to patch.
    pub(super) fn has_subresource(&self) -> bool {
        let kind = &self.target.kind;
        match self.target.subresource.as_str() {
            "" => true,
            "status" => kind.has_status,
            "scale" => kind.scale.is_some(),
            "ephemeralcontainers" | "resize" => kind.resource == Resource::PODS,
            "finalize" => kind.resource == Resource::NAMESPACES,
            "approval" => kind.resource.plural == "certificatesigningrequests",
            _ => false,
        }
    }

    /// The object in the body, JSON or YAML.
    pub(super) fn object(&self) -> Result<Value, StatusError> {
        if self.content_type.contains("protobuf") {
            return protobuf::decode(self.body);
        }
        match serde_json::from_slice(self.body) {
            Ok(value) => Ok(value),
            Err(_) if self.content_type.contains("yaml") => serde_saphyr::from_slice(self.body)
                .map_err(|e| StatusError::bad_request(format!("error decoding the body: {e}"))),
            Err(error) => Err(StatusError::bad_request(format!(
                "error decoding the body: {error}"
            ))),
        }
    }

    /// Refuses values of a wrong type, and refuses or reports fields that the kind does not have, as `fieldValidation`
    /// asks.
    pub(super) fn check_fields(&self, object: &Value) -> Result<Vec<String>, StatusError> {
        let kind = &self.target.kind;
        if let Some(problem) = unknown::mistyped(kind, object) {
            return Err(StatusError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {problem}",
                kind.kind, self.target.version, kind.kind
            )));
        }
        self.check_unknown_fields(object)
    }

    /// Refuses or reports fields that the kind does not have, whatever their types.
    pub(super) fn check_unknown_fields(&self, object: &Value) -> Result<Vec<String>, StatusError> {
        let mode = self.query.get("fieldValidation");
        if mode == "Ignore" || mode.is_empty() {
            return Ok(Vec::new());
        }
        let found = unknown::fields(&self.target.kind, &self.target.version, object);
        if mode == "Strict" && !found.is_empty() {
            let list = found.join(", ");
            return Err(StatusError::bad_request(format!(
                "{} in version {:?} cannot be handled as a \
                {}: strict decoding error: {list}",
                self.target.kind.kind, self.target.version, self.target.kind.kind
            )));
        }
        Ok(found)
    }
}
