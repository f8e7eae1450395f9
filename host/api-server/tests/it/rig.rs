//! What the tests share: a server, requests to it over its HTTP service, and a kind of its own.

use std::sync::Arc;

use api_server::{ApiServer, Resource, StatusError};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::Service as _;

/// A server on whose clock nothing moves.
pub(crate) fn server() -> ApiServer {
    let now = Timestamp::UNIX_EPOCH;
    ApiServer::new(7, Arc::new(move || now))
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    /// The values in the body, one a line.
    pub(crate) lines: Vec<Value>,
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    /// The only value in the body.
    pub(crate) fn body(&self) -> &Value {
        let [body] = self.lines.as_slice() else {
            panic!("{self:?}");
        };
        body
    }

    pub(crate) fn message(&self) -> &str {
        self.body()["message"].as_str().unwrap_or_default()
    }
}

/// Sends a request such as `PATCH /api/v1/nodes/a` with a body of the type `application/{content}`, and waits until the
/// answer has ended.
pub(crate) async fn send(server: &ApiServer, line: &str, content: &str, body: &Value) -> Answer {
    let (method, uri) = line.split_once(' ').unwrap();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(uri)
        .header("Content-Type", format!("application/{content}"))
        .body(Full::new(bytes::Bytes::from(body)))
        .unwrap();
    let answer = server.clone().call(request).await.unwrap();
    let code = answer.status().as_u16();
    let warnings = answer.headers().get_all("Warning").iter();
    let warnings = warnings.map(|it| it.to_str().unwrap().to_owned()).collect();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    let lines = serde_json::Deserializer::from_slice(&bytes).into_iter();
    Answer {
        code,
        lines: lines.collect::<Result<_, _>>().unwrap(),
        warnings,
    }
}

/// Reads.
pub(crate) async fn get(server: &ApiServer, uri: &str) -> Answer {
    send(server, &format!("GET {uri}"), "json", &Value::Null).await
}

/// A pod of the `default` namespace.
pub(crate) fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
    })
}

pub(crate) fn must<T>(result: Result<T, StatusError>) -> T {
    result.unwrap_or_else(|status| panic!("{status}"))
}

pub(crate) fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {
                        "spec": {
                            "type": "object", "required": ["size"],
                            "properties": {
                                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                                "replicas": {"type": "integer"},
                                "color": {"type": "string", "default": "red",
                                          "enum": ["red", "blue"]},
                                "parts": {
                                    "type": "array", "maxItems": 2,
                                    "x-kubernetes-list-type": "map",
                                    "x-kubernetes-list-map-keys": ["name"],
                                    "items": {"type": "object", "required": ["name"], "properties": {
                                        "name": {"type": "string", "pattern": "^[a-z]+$"},
                                        "count": {"type": "integer"},
                                    }},
                                },
                            },
                            "x-kubernetes-validations": [
                                {"rule": "self.size >= oldSelf.size", "message": "size never shrinks"},
                                {"rule": "!has(self.parts) || self.parts.all(p, p.name != 'bad')",
                                 "message": "no bad part"},
                            ],
                        },
                        "status": {"type": "object", "properties": {
                            "replicas": {"type": "integer"},
                        }},
                    },
                }},
            }],
        },
    })
}

pub(crate) const WIDGETS: Resource = Resource::fixed("example.com", "widgets");

/// A kind of which the test says what there is in its spec.
pub(crate) const GADGETS: Resource = Resource::fixed("example.com", "gadgets");

/// A kind whose spec has these properties and rules.
pub(crate) fn gadgets(properties: &Value, rules: &Value) -> Value {
    json!({
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "properties": properties, "x-kubernetes-validations": rules,
                }}}},
            }],
        },
    })
}

pub(crate) fn gadget(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec})
}

pub(crate) fn with_gadgets(properties: &Value, rules: &Value) -> ApiServer {
    let server = server();
    must(server.install_crd(&gadgets(properties, rules)));
    server
}
