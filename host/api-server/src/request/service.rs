//! The server as a tower service, for clients in the same process: nothing listens, nothing waits for a socket.

use crate::request::answer::{ApiResponse, answer_status};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use http_body_util::BodyExt;

use crate::api_server::ApiServer;
use crate::request::routes;
use crate::status::StatusError;

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = ApiResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<ApiResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answer = match body.collect().await {
                Ok(collected) => routes::handle(&server, &parts, &collected.to_bytes()),
                Err(error) => answer_status(&StatusError::bad_request(error.to_string())),
            };
            Ok(answer)
        })
    }
}
