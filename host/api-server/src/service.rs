//! The server as a tower service, for clients in the same process: nothing listens, nothing waits for a socket.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde::Serialize;

use super::direct::ApiServer;
use super::routes;
use super::status::Status;

/// The body of a response: all at once, or a watch that goes on.
pub type ResponseBody = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

/// A whole response.
pub(super) type Answer = Response<ResponseBody>;

/// Answers with bytes of a content type.
pub(super) fn answer_bytes(code: u16, content_type: &str, bytes: Vec<u8>) -> Answer {
    let body = Full::new(Bytes::from(bytes)).boxed_unsync();
    let built = Response::builder()
        .status(code)
        .header(http::header::CONTENT_TYPE, content_type)
        .body(body);
    built.unwrap_or_else(|_| Response::new(Full::new(Bytes::new()).boxed_unsync()))
}

/// Answers with an object.
pub(super) fn answer_json(code: u16, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(bytes) => answer_bytes(code, "application/json", bytes),
        Err(error) => answer_status(&Status::internal(error.to_string())),
    }
}

/// Answers with a failure.
pub(super) fn answer_status(status: &Status) -> Answer {
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

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answer = match body.collect().await {
                Ok(collected) => routes::handle(&server, &parts, &collected.to_bytes()),
                Err(error) => answer_status(&Status::bad_request(error.to_string())),
            };
            Ok(answer)
        })
    }
}
