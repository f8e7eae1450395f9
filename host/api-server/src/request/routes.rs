//! From request to answer: which verb on which resource.
//!
//! Parses and formats; what a verb means is in the modules it calls.

mod continue_token;
mod delete;
mod patch;
mod post;
mod put;
mod read;
mod representation;
mod resource_request;

use self::resource_request::ResourceRequest;

use http::request::Parts;
use http::{Method, header};
use serde_json::json;

use crate::api_server::ApiServer;
use crate::request::answer::{ApiResponse, answer_bytes, answer_json, answer_status};
use crate::request::listener::PathPrefix;
use crate::request::{QueryParameters, Representation, Target};
use crate::served::discovery;
use crate::served::openapi;
use crate::served::review;
use crate::status::StatusError;

/// Answers any request.
pub(crate) fn handle(server: &ApiServer, parts: &Parts, body: &[u8]) -> ApiResponse {
    let result = match parts.uri.path().trim_end_matches('/') {
        "/healthz" | "/readyz" | "/livez" => Ok(answer_bytes(200, "text/plain", b"ok".to_vec())),
        "/version" => Ok(answer_json(200, &discovery::version(server))),
        "" => Ok(answer_json(
            200,
            &json!({"paths": ["/api", "/apis", "/openapi/v3", "/version"]}),
        )),
        path if path.starts_with("/openapi/") => {
            let prefix = parts
                .extensions
                .get::<PathPrefix>()
                .map_or("", |p| p.0.as_str());
            openapi::answer(server, path, prefix)
        }
        path => match discovery::answer(server, path, header_text(parts, &header::ACCEPT)) {
            Some(answer) => Ok(answer),
            None => resource(server, parts, body),
        },
    };
    result.unwrap_or_else(|status| answer_status(&status))
}

fn header_text<'a>(parts: &'a Parts, name: &header::HeaderName) -> &'a str {
    parts
        .headers
        .get(name)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default()
}

fn resource(server: &ApiServer, parts: &Parts, body: &[u8]) -> Result<ApiResponse, StatusError> {
    let path = parts.uri.path();
    let content_type = header_text(parts, &header::CONTENT_TYPE);
    if let Some(answer) = review::answer(&parts.method, path, content_type, body)? {
        return Ok(answer);
    }
    let target = server.with(|store| Target::parse(&store.kinds, path))?;
    let request = ResourceRequest {
        server,
        query: QueryParameters::parse(parts.uri.query().unwrap_or_default()),
        shape: Representation::of(header_text(parts, &header::ACCEPT)),
        content_type,
        body,
        target,
    };
    match parts.method {
        Method::GET if request.target.subresource.is_empty() => request.read(),
        Method::GET => request.read_subresource(),
        Method::POST => request.post(),
        Method::PUT => request.put(),
        Method::PATCH => request.patch(),
        Method::DELETE => request.delete(),
        _ => Err(StatusError::method_not_allowed()),
    }
}
