//! Requests through the guard, against an API server that answers as it is told to.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode, header};
use tokio::sync::Notify;
use tokio::time::Instant;
use tower::service_fn;

use super::*;
use crate::logged_lines::LoggedLines;

/// What the server does with the requests that come, one after the other; the last goes on for ever.
#[derive(Debug, Clone, Copy)]
enum Does {
    Answer(u16),
    TellsToWait(u16, &'static str),
    StaysSilent,
    /// The head comes, and of the body nothing.
    StopsHalfway,
}

/// Sends one request to such a server: what came of it, how often it arrived and how long it took.
async fn sent(method: Method, uri: &str, does: &'static [Does]) -> (String, usize, u64) {
    let arrived = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&arrived);
    let server = service_fn(move |_: Request<Body>| {
        let number = counter.fetch_add(1, Ordering::Relaxed);
        answer(does[number.min(does.len() - 1)])
    });
    let request = Request::builder().method(method).uri(uri);
    let request = request.body(Body::from(b"{}".to_vec())).unwrap();
    let started = Instant::now();
    let outcome = Guard::none().layer(server).oneshot(request).await;
    let outcome = match outcome {
        Ok(answer) => answer.status().as_u16().to_string(),
        Err(error) => error.to_string(),
    };
    let seconds = started.elapsed().as_secs();
    (outcome, arrived.load(Ordering::Relaxed), seconds)
}

async fn answer(does: Does) -> Result<Response<AnswerBody>, BoxError> {
    let silence = std::future::pending::<Result<http_body::Frame<Bytes>, BoxError>>();
    let whole = || {
        Full::new(Bytes::from_static(b"{}"))
            .map_err(|never| match never {})
            .boxed_unsync()
    };
    let response = Response::builder();
    Ok(match does {
        Does::Answer(status) => response.status(status).body(whole())?,
        Does::TellsToWait(status, seconds) => response
            .status(status)
            .header(header::RETRY_AFTER, seconds)
            .body(whole())?,
        Does::StaysSilent => std::future::pending().await,
        Does::StopsHalfway => {
            let body = http_body_util::StreamBody::new(futures::stream::once(silence));
            response.status(StatusCode::OK).body(body.boxed_unsync())?
        }
    })
}

const PODS: &str = "/api/v1/pods";

/// Keeps what this thread logs for as long as the second part lives.
fn log() -> (LoggedLines, tracing::subscriber::DefaultGuard) {
    let lines = LoggedLines::default();
    let kept = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || kept.clone())
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_given_up_after_a_minute() {
    let silent = format!("the API server did not answer within {} s", 60);
    for does in [&[Does::StaysSilent], &[Does::StopsHalfway]] {
        let expected = (silent.clone(), 1, 60);
        assert_eq!(sent(Method::GET, PODS, does).await, expected);
        assert_eq!(sent(Method::POST, PODS, does).await, expected);
    }
    let watch = sent(
        Method::GET,
        "/api/v1/pods?watch=true",
        &[Does::StopsHalfway],
    );
    assert_eq!(watch.await, ("200".to_owned(), 1, 0), "a watch began");
}

#[tokio::test]
async fn a_refusal_is_told_and_handed_on_whole() {
    const REFUSAL: &str = r#"{"kind": "Status", "code": 403, "message": "pods is forbidden: User \"u\" cannot watch resource \"pods\" in API group \"\" at the cluster scope"}"#;
    let (lines, _subscriber) = log();
    let server = service_fn(|_: Request<Body>| async {
        let body = Full::new(Bytes::from_static(REFUSAL.as_bytes()));
        let body: AnswerBody = body.map_err(|never| match never {}).boxed_unsync();
        let refusal = Response::builder().status(StatusCode::FORBIDDEN);
        Ok::<_, BoxError>(refusal.body(body)?)
    });
    let guarded = Guard::none().layer(server);
    for uri in ["/api/v1/pods?watch=true", PODS] {
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let answer = guarded.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{uri}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, REFUSAL, "{uri}");
    }
    let lines = lines.text();
    assert_eq!(lines.matches("lacks a right").count(), 1, "{lines}");
    assert!(
        lines.contains("watch pods") && lines.contains("helm upgrade"),
        "{lines}"
    );
}

#[tokio::test]
async fn who_owns_which_field_is_left_out_of_objects_and_of_watches() {
    const OBJECT: &str = r#"{"managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]}"#;
    let server = service_fn(|_: Request<Body>| async {
        let (first, second) = OBJECT.split_at(OBJECT.len() / 2);
        let frames = [first, second].map(|it| http_body::Frame::data(Bytes::from(it)));
        let frames = futures::stream::iter(frames.map(Ok::<_, BoxError>));
        let body = http_body_util::StreamBody::new(frames);
        Ok::<_, BoxError>(Response::new(body.boxed_unsync()))
    });
    let guarded = Guard::none().layer(server);
    for uri in ["/api/v1/pods?watch=true", PODS] {
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let answer = guarded.clone().oneshot(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let without = r#"{"managedFields":[{"manager":"m","fieldsV1":null}]}"#;
        assert_eq!(body, without, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_outcome_is_unknown_is_sent_once() {
    let claims = "/apis/karpenter.sh/v1/nodeclaims";
    for status in [500, 503, 504] {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let does: &'static [Does] = match status {
                500 => &[Does::TellsToWait(500, "1"), Does::Answer(200)],
                503 => &[Does::TellsToWait(503, "1"), Does::Answer(200)],
                _ => &[Does::TellsToWait(504, "1"), Does::Answer(200)],
            };
            let expected = (status.to_string(), 1, 0);
            assert_eq!(sent(method, claims, does).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_told_to_wait_waits_and_comes_back() {
    let does = &[Does::TellsToWait(429, "3"), Does::Answer(201)];
    let expected = ("201".to_owned(), 2, 3);
    assert_eq!(sent(Method::POST, PODS, does).await, expected);
    let does = &[Does::Answer(503), Does::Answer(504), Does::Answer(200)];
    let expected = ("200".to_owned(), 3, 0);
    assert_eq!(sent(Method::GET, PODS, does).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_refused_eviction_is_told_at_once() {
    let path = "/api/v1/namespaces/a/pods/b/eviction";
    let does = &[Does::TellsToWait(429, "10")];
    let expected = ("429".to_owned(), 1, 0);
    assert_eq!(sent(Method::POST, path, does).await, expected);
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_things_are_read_and_not_changed() {
    let server = service_fn(|_: Request<Body>| answer(Does::Answer(200)));
    let (fence, rate) = (Fence::closed(), None);
    let guarded = Guard {
        fence: fence.clone(),
        rate,
        metrics: ClientMetrics::default(),
        reads_only: None,
        missing_rights: MissingRights::default(),
    }
    .layer(server);
    let ask = async |method: Method| {
        let request = Request::builder().method(method).uri(PODS);
        let request = request.body(Body::empty()).unwrap();
        guarded.clone().oneshot(request).await.is_ok()
    };
    assert!(ask(Method::GET).await);
    let changes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    for method in changes.clone() {
        assert!(!ask(method).await);
    }
    fence.hold_until(Instant::now() + Duration::from_secs(1));
    for method in changes {
        assert!(ask(method).await);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!ask(Method::POST).await, "nobody renewed the lease");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_waits_for_a_connection_is_not_sent_after_the_lease() {
    let connected = Arc::new(Notify::new());
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let server = {
        let (connected, arrived) = (Arc::clone(&connected), Arc::clone(&arrived));
        service_fn(move |request: Request<Body>| {
            let (connected, arrived) = (Arc::clone(&connected), Arc::clone(&arrived));
            async move {
                connected.notified().await;
                arrived.lock().unwrap().push(request.uri().to_string());
                answer(Does::Answer(200)).await
            }
        })
    };
    let fence = Fence::closed();
    fence.hold_until(Instant::now() + Duration::from_secs(10));
    let guard = Guard {
        fence,
        ..Guard::none()
    };
    let request = Request::post(PODS).body(Body::empty()).unwrap();
    let sending = tokio::spawn(guard.layer(server).oneshot(request));
    tokio::task::yield_now().await;
    tokio::time::advance(Duration::from_secs(11)).await;
    connected.notify_one();
    let error = sending.await.unwrap().err().unwrap();
    assert_eq!(error.to_string(), Lapsed.to_string());
    assert!(arrived.lock().unwrap().is_empty());
}

#[tokio::test]
async fn who_may_only_look_sends_plain_reads_and_nothing_else() {
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&arrived);
    let server = service_fn(move |request: Request<Body>| {
        log.lock().unwrap().push(request.method().to_string());
        answer(Does::Answer(200))
    });
    let reads_only = ReadsOnly::default();
    let guarded = Guard::reading(&reads_only).layer(server);
    let ask = async |request: http::request::Builder| {
        let request = request.uri(PODS).body(Body::empty()).unwrap();
        guarded
            .clone()
            .oneshot(request)
            .await
            .map_err(|it| it.to_string())
    };
    assert!(ask(Request::builder().method(Method::GET)).await.is_ok());
    let others = [
        "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "CONNECT",
    ];
    for method in others {
        let refused = ask(Request::builder().method(method)).await.unwrap_err();
        assert_eq!(
            refused, "this client only reads: the request was not sent",
            "{method}"
        );
    }
    // `kubectl exec` is a GET, too.
    let exec = Request::builder()
        .method(Method::GET)
        .header(header::UPGRADE, "websocket");
    assert!(ask(exec).await.is_err());
    assert_eq!(*arrived.lock().unwrap(), ["GET"]);
    let refused = u64::try_from(others.len() + 1).unwrap();
    assert_eq!(
        reads_only.requests(),
        shadow::Requests { reads: 1, refused }
    );
}
