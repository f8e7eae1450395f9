//! Which answers of the API server make the client ask the same again, and when.
//!
//! A change is repeated only where the server says that it did not happen, which is what 429 with a time means: flow
//! control turned it away before anybody looked at it. Whether a change that ended in a 503, a 504 or in silence
//! happened is not known here, and left to those who can look. A refused eviction is news for who asked for it.
//! Nothing is sent here. Answers to `IsRetryableAfterResponse` of client-go's `rest/with_retry.go`.

use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode, header};

/// How often one request is sent, at most.
const ATTEMPTS_MAX: u32 = 5;
/// Pause before a read is repeated of which the server does not say when; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(200);
/// A server that wants more time is left to the queues of those who ask, which do something else meanwhile.
const PAUSE_MAX: Duration = Duration::from_secs(15);

/// Nature of a request to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A stream without end.
    Watch,
    Read,
    Change,
    /// A change whose 429 is the word of a PodDisruptionBudget.
    Eviction,
}

impl RequestKind {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let uri = request.uri();
        let asks = |pair: &str| matches!(pair, "watch=true" | "watch=1");
        if request.method() == Method::GET || request.method() == Method::HEAD {
            let is_watch = uri.query().is_some_and(|it| it.split('&').any(asks));
            return if is_watch { Self::Watch } else { Self::Read };
        }
        if uri.path().ends_with("/eviction") {
            Self::Eviction
        } else {
            Self::Change
        }
    }

    /// Whether the request may change anything.
    pub(super) fn is_change(self) -> bool {
        match self {
            Self::Watch | Self::Read => false,
            Self::Change | Self::Eviction => true,
        }
    }
}

/// How long to wait before the same request is sent again; nothing if the answer stands.
pub(super) fn pause(
    kind: RequestKind,
    status: StatusCode,
    headers: &HeaderMap,
    attempts: u32,
) -> Option<Duration> {
    if attempts >= ATTEMPTS_MAX {
        return None;
    }
    let asked_for = retry_after(headers);
    let pause = match (kind, status) {
        (RequestKind::Change, StatusCode::TOO_MANY_REQUESTS) => asked_for,
        (
            RequestKind::Read | RequestKind::Watch,
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT,
        ) => Some(
            asked_for
                .unwrap_or_else(|| PAUSE_FIRST * 2_u32.saturating_pow(attempts.saturating_sub(1))),
        ),
        (RequestKind::Read | RequestKind::Watch, status) if status.is_server_error() => asked_for,
        (
            RequestKind::Change | RequestKind::Eviction | RequestKind::Read | RequestKind::Watch,
            _,
        ) => None,
    };
    pause.filter(|it| *it <= PAUSE_MAX)
}

/// What the server says of it, in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
