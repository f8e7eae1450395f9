//! Guards of every request to the API server: the fence, the pace, the time limit, and repeats; and of every answer,
//! which loses what nobody reads.
//!
//! It knows no objects. A request waits for its turn before the fence is looked at, and the fence is looked at again
//! whenever the request gets on: one that waits for a connection while the process is frozen is not sent afterwards.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt as _};

use super::field_owners::FieldOwners;
use super::missing_rights::MissingRights;
use super::rate::RateLimiter;
use super::reads_only::ReadsOnly;
use super::repeats::{RequestKind, pause};
use super::requests::{AskedFor, ClientMetrics};
use crate::fence::{Fence, Lapsed};

/// After a minute the API server itself gives up what is not a watch (`--request-timeout`), so that whoever waits
/// longer waits for nobody. A watch has as long to begin; how long it may be silent is its reader's affair.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Limits that a client keeps to.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    /// Nothing is changed while it is closed.
    pub(crate) fence: Fence,
    /// Watches aside, no more requests than this; nothing for no limit.
    pub(crate) rate: Option<Arc<RateLimiter>>,
    /// Where requests are counted.
    pub(crate) metrics: ClientMetrics,
    /// Nothing but plain reads is sent.
    pub(crate) reads_only: Option<ReadsOnly>,
    /// Where it is told that something may not be asked.
    pub(crate) missing_rights: MissingRights,
}

impl Guard {
    /// For commands that people give, and for the election: no fence and no pace.
    pub(crate) fn none() -> Self {
        Self {
            fence: Fence::open(),
            rate: None,
            metrics: ClientMetrics::default(),
            reads_only: None,
            missing_rights: MissingRights::default(),
        }
    }

    /// For who may only look.
    pub(crate) fn reading(reads_only: &ReadsOnly) -> Self {
        Self {
            reads_only: Some(reads_only.clone()),
            ..Self::none()
        }
    }
}

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            inner,
            guard: self.clone(),
        }
    }
}

/// A service whose requests keep to a [`Guard`].
#[derive(Debug, Clone)]
pub(crate) struct Guarded<S> {
    inner: S,
    guard: Guard,
}

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

impl<S, B> Service<Request<Body>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Each attempt waits for the inner service itself.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let guarded = self.clone();
        Box::pin(guarded.send(request))
    }
}

impl<S, B> Guarded<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn send(self, mut request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        let kind = RequestKind::of(&request);
        let Self { inner, guard } = self;
        let mut attempts = 0;
        loop {
            if let Some(reads_only) = &guard.reads_only {
                reads_only.admit(&request)?;
            }
            if let Some(rate) = guard.rate.as_ref().filter(|_| kind != RequestKind::Watch) {
                rate.admit().await;
            }
            let spare = copy(&request);
            let (asked, started) = (
                AskedFor::of(request.method(), request.uri()),
                Instant::now(),
            );
            let answer = attempt(inner.clone(), &guard, kind, request).await;
            let status = answer.as_ref().ok().map(|it| it.status().as_u16());
            guard
                .metrics
                .observe_answer(&asked, status, started.elapsed());
            let answer = answer?;
            attempts += 1;
            match (
                pause(kind, answer.status(), answer.headers(), attempts),
                spare,
            ) {
                (Some(pause), Some(spare)) => {
                    drop(answer);
                    tokio::time::sleep(pause).await;
                    request = spare;
                }
                (None, _) | (_, None) => return Ok(answer),
            }
        }
    }
}

/// Sends the request once, as far as the fence lets it and for as long as an answer may take.
async fn attempt<S, B>(
    service: S,
    guard: &Guard,
    kind: RequestKind,
    request: Request<Body>,
) -> Result<Response<AnswerBody>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut exchange = pin!(exchange(service, &guard.missing_rights, kind, request));
    let fenced = poll_fn(|context| {
        if kind.is_change() && !guard.fence.is_open() {
            return Poll::Ready(Err(Lapsed.into()));
        }
        exchange.as_mut().poll(context)
    });
    let answer = tokio::time::timeout(REQUEST_TIMEOUT, fenced).await;
    answer.unwrap_or_else(|_| {
        let seconds = REQUEST_TIMEOUT.as_secs();
        Err(format!("the API server did not answer within {seconds} s").into())
    })
}

/// One question and its answer: the beginning of a watch, all of anything else and of refusals.
async fn exchange<S, B>(
    service: S,
    missing_rights: &MissingRights,
    kind: RequestKind,
    request: Request<Body>,
) -> Result<Response<AnswerBody>, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let answer = service.oneshot(request).await?;
    if kind == RequestKind::Watch && answer.status().is_success() {
        let mut owners = FieldOwners::default();
        return Ok(answer.map(|body| {
            let body = body.map_err(Into::into);
            let body = body.map_frame(move |frame| frame.map_data(|it| owners.leave_out(it)));
            body.boxed_unsync()
        }));
    }
    let (head, body) = answer.into_parts();
    let bytes = body.collect().await.map_err(Into::into)?.to_bytes();
    let bytes = FieldOwners::default().leave_out(bytes);
    missing_rights.note_answer(head.status, &bytes);
    let whole = Full::new(bytes).map_err(|never| match never {});
    Ok(Response::from_parts(head, whole.boxed_unsync()))
}

/// A copy of a request, to be sent once more; a body that is a stream cannot be copied.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut copy = Request::new(body);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

#[cfg(test)]
mod tests;
