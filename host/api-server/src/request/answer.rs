//! Answers to requests: bytes, objects, failures. Knows nothing of what was asked.

use std::convert::Infallible;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::json;

use crate::status::StatusError;

/// The body of a response: all at once, or a watch that goes on.
pub type ResponseBody = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

/// A whole response.
pub(crate) type ApiResponse = Response<ResponseBody>;

/// Answers with bytes of a content type.
pub(crate) fn answer_bytes(code: u16, content_type: &str, bytes: Vec<u8>) -> ApiResponse {
    let body = Full::new(Bytes::from(bytes)).boxed_unsync();
    let built = Response::builder()
        .status(code)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(body);
    built.unwrap_or_else(|_| Response::new(Full::new(Bytes::new()).boxed_unsync()))
}

/// Answers with an object.
pub(crate) fn answer_json(code: u16, value: &impl Serialize) -> ApiResponse {
    match serde_json::to_vec(value) {
        Ok(bytes) => answer_bytes(code, "application/json", bytes),
        Err(error) => answer_status(&StatusError::internal(error.to_string())),
    }
}

/// Answers with a failure.
pub(crate) fn answer_status(status: &StatusError) -> ApiResponse {
    let bytes = status.to_value().to_string().into_bytes();
    let mut answer = answer_bytes(status.code, "application/json", bytes);
    if status.code == 429 {
        let wait = http::HeaderValue::from_static("10");
        if status
            .details
            .as_ref()
            .is_some_and(|d| d["retryAfterSeconds"].is_number())
        {
            answer.headers_mut().insert(http::header::RETRY_AFTER, wait);
        }
    }
    answer
}

/// Answers that it is done, where there is no object to show.
pub(crate) fn answer_success(code: u16) -> ApiResponse {
    answer_json(
        code,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code,
        }),
    )
}
