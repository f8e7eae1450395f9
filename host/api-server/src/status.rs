//! Failures in the words and codes of the Kubernetes API (`meta/v1.Status`).
//!
//! Every refusal of the server is one of these; nothing else may leave it. Answers to apimachinery's
//! `api/errors`, so that kubectl and client libraries read our errors as they read a cluster's.

use std::fmt;

use serde_json::{Value, json};

use crate::resource::Resource;

/// The cause that upstream gives for a namespace that goes.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// One failed request, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: &'static str,
    /// The sentence a person reads.
    pub message: String,
    /// Group, kind and name of the object, causes and retry time, where they are known.
    pub details: Option<Box<Value>>,
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StatusError {}

/// One field that a validation refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// Path of the field, such as `spec.containers[0].name`.
    pub field: String,
    /// Such as `Required value` or `Invalid value: "x": must be no more than 63 characters`.
    pub message: String,
}

impl FieldError {
    /// A field that must be present and is not.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self {
            reason: "FieldValueRequired",
            field: field.into(),
            message,
        }
    }

    /// A value that breaks a rule. Strings are quoted as Kubernetes quotes them.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", shown(value));
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message,
        }
    }

    /// A value outside a closed list.
    pub fn not_supported(field: impl Into<String>, value: &Value, allowed: &[String]) -> Self {
        let list: Vec<String> = allowed.iter().map(|a| format!("{a:?}")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            list.join(", ")
        );
        Self {
            reason: "FieldValueNotSupported",
            field: field.into(),
            message,
        }
    }

    /// A second entry of what must be unique.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Duplicate value: {}", shown(value));
        Self {
            reason: "FieldValueDuplicate",
            field: field.into(),
            message,
        }
    }

    /// A field that may not be set or changed here.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: format!("Forbidden: {detail}"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Object(_) | Value::Array(_) => "\"object\"".to_owned(),
        other => other.to_string(),
    }
}

impl StatusError {
    fn new(code: u16, reason: &'static str, message: String) -> Self {
        Self {
            code,
            reason,
            message,
            details: None,
        }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = Some(Box::new(json!({
            "name": name, "group": resource.group, "kind": resource.plural,
        })));
        self
    }

    /// No object of this name.
    pub fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// No such path or resource at all.
    pub fn no_such_resource() -> Self {
        let mut status = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource".to_owned(),
        );
        status.details = Some(Box::new(json!({})));
        status
    }

    /// An object of this name is there already.
    pub fn already_exists(resource: &Resource, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{resource} {name:?} already exists"),
        )
        .about(resource, name)
    }

    /// The writer's copy is stale, or a precondition failed.
    pub fn conflict(resource: &Resource, name: &str, detail: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {detail}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// Field conflicts of a server-side apply.
    pub fn apply_conflict(message: String, causes: &[Value]) -> Self {
        let mut status = Self::new(409, "Conflict", message);
        status.details = Some(Box::new(json!({ "causes": causes })));
        status
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message.into())
    }

    /// The request is understood and refused.
    pub fn forbidden(resource: &Resource, name: &str, detail: &str) -> Self {
        Self::new(
            403,
            "Forbidden",
            format!("{resource} {name:?} is forbidden: {detail}"),
        )
        .about(resource, name)
    }

    /// Nothing comes into a namespace that goes.
    pub fn terminating_namespace(resource: &Resource, name: &str, namespace: &str) -> Self {
        let detail = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut status = Self::forbidden(resource, name, &detail);
        if let Some(details) = &mut status.details {
            details["causes"] = json!([{
                "reason": NAMESPACE_TERMINATING, "field": "metadata.namespace",
                "message": format!("namespace {namespace} is being terminated"),
            }]);
        }
        status
    }

    /// No token, or a wrong one.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized".to_owned())
    }

    /// The verb is not served for the resource.
    pub fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource".to_owned(),
        )
    }

    /// The body's content type is not served.
    pub fn unsupported_media_type(given: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!("the body of the request was in an unknown format - {given}"),
        )
    }

    /// The object fails validation. `kind` is `Pod` or `Deployment.apps`.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}.{group}")
        };
        let texts: Vec<String> = errors
            .iter()
            .map(|e| {
                if e.field.is_empty() {
                    e.message.clone()
                } else {
                    format!("{}: {}", e.field, e.message)
                }
            })
            .collect();
        let joined = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({"reason": e.reason, "message": e.message, "field": e.field}))
            .collect();
        let mut status = Self::new(
            422,
            "Invalid",
            format!("{qualified} {name:?} is invalid: {joined}"),
        );
        status.details = Some(Box::new(
            json!({"name": name, "group": group, "kind": kind, "causes": causes}),
        ));
        status
    }

    /// The revision asked for has left the server's memory.
    pub fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(
            410,
            "Expired",
            format!("too old resource version: {asked} ({oldest})"),
        )
    }

    /// A disruption budget stands in the way for now.
    pub fn too_many_requests(message: impl Into<String>, causes: &[Value]) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message.into());
        status.details = Some(Box::new(json!({ "causes": causes })));
        status
    }

    /// The server cannot decide.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message.into())
    }

    /// Whether the object asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether the kind is served and one object of it does not exist.
    pub fn is_of_missing_object(&self) -> bool {
        let details = self.details.as_ref();
        self.is_not_found() && details.is_some_and(|it| it["name"].is_string())
    }

    /// Whether the writer's copy was stale, or a precondition failed.
    pub fn is_conflict(&self) -> bool {
        self.reason == "Conflict"
    }

    /// Whether the namespace of what was to be created is on its way out.
    pub fn is_of_terminating_namespace(&self) -> bool {
        let details = self.details.as_ref();
        details.is_some_and(|it| it["causes"][0]["reason"] == NAMESPACE_TERMINATING)
    }

    /// Whether an object of the name was there already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// The object on the wire.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if let Some(details) = &self.details {
            value["details"] = (**details).clone();
        }
        value
    }
}
