//! `/metrics`, `/healthz` and `/readyz`, on Karpenter's ports, and beside the metrics `/debug/ledger`,
//! `/debug/policy-records`, `/debug/log-level` and, where it is asked for, `/debug/pprof/`.

mod connections;
mod profiles;
mod reviews;
mod tls;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, put};
use connections::{ConnectionLimits, serve_within};
use controllers::SharedLedger;
use flate2::Compression;
use flate2::write::GzEncoder;
use kube::Client;
use locks::lock;
use state::ledger::{PolicyPart, Subject, Why};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::exposition::{ExpositionFormat, accepts_gzip};
use crate::logging::LogLevel;
use crate::policies::recorder::FileRecorder;
use crate::policies::records::records_router;

pub(crate) use reviews::secured;

/// Sources of answers to the probes and the scrape.
#[derive(Clone)]
pub(crate) struct Probes {
    /// Whether the caches have been filled once.
    pub(crate) is_ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The metrics in a format.
    pub(crate) metrics: MetricsText,
    /// Ledger that `mortise why` reads.
    pub(crate) ledger: SharedLedger,
    /// Parts that policies had in a decision.
    pub(crate) policy_parts: PolicyParts,
    /// Where calls of policies are kept, if they are.
    pub(crate) recorder: Option<Arc<FileRecorder>>,
    /// Changes the level of the log, if it can be changed.
    pub(crate) log_level: Option<LogLevel>,
    /// Whether profiles of the process are taken for who asks.
    pub(crate) is_profiled: bool,
}

/// All that is measured, in a format.
pub(crate) type MetricsText = Arc<dyn Fn(ExpositionFormat) -> String + Send + Sync>;

/// Tells by the id of a decision what policies did in it.
pub(crate) type PolicyParts = Arc<dyn Fn(&str) -> Vec<PolicyPart> + Send + Sync>;

/// Where the ledger answers; the question is `?kind=node&name=NAME`.
pub(crate) const LEDGER_PATH: &str = "/debug/ledger";

/// Where the level of the log is changed, with `curl -X PUT --data debug`.
const LOG_LEVEL_PATH: &str = "/debug/log-level";

/// How the metrics port is served where not everybody may ask.
pub(crate) struct SecurePort {
    tls: TlsAcceptor,
    /// Client that asks the API server whether a caller may.
    client: Client,
}

impl SecurePort {
    /// With the certificate of a folder (`tls.crt` and `tls.key`), else with one of its own.
    pub(crate) fn new(certificates: Option<&Path>, client: Client) -> anyhow::Result<Self> {
        Ok(Self {
            tls: tls::acceptor(certificates)?,
            client,
        })
    }
}

/// Serves both ports until the process ends; a port of 0 is not served.
pub(crate) async fn serve(
    probes: Probes,
    metrics_port: u16,
    secure: Option<SecurePort>,
    health_port: u16,
) -> anyhow::Result<()> {
    let parts = Arc::clone(&probes.policy_parts);
    let debug_router = ledger_router(Arc::clone(&probes.ledger), parts)
        .merge(records_router(probes.recorder.clone()))
        .merge(log_level_router(probes.log_level.clone()));
    let mut metrics_router = debug_router.merge(metrics_router(Arc::clone(&probes.metrics)));
    if probes.is_profiled {
        metrics_router = metrics_router.merge(profiles::router());
    }
    let (tls, metrics_router) = match secure {
        None => (None, metrics_router),
        Some(SecurePort { tls, client }) => (Some(tls), secured(metrics_router, client)),
    };
    let is_ready = Arc::clone(&probes.is_ready);
    let health_router = Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route(
            "/readyz",
            get(move || {
                let ready = is_ready();
                async move {
                    if ready {
                        (StatusCode::OK, "ok")
                    } else {
                        (StatusCode::SERVICE_UNAVAILABLE, "caches are not synced")
                    }
                }
            }),
        );
    tokio::try_join!(
        listen(metrics_port, tls, metrics_router, "metrics"),
        listen(health_port, None, health_router, "health probe")
    )?;
    Ok(())
}

/// Answers who scrapes, as that one likes it.
fn metrics_router(metrics: MetricsText) -> Router {
    let answer = move |headers: HeaderMap| {
        let told = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
        let format = ExpositionFormat::accepted(told("accept").unwrap_or_default());
        let is_gzipped = accepts_gzip(told("accept-encoding").unwrap_or_default());
        let text = metrics(format);
        async move { page(text, format, is_gzipped).await }
    };
    Router::new().route("/metrics", get(answer))
}

/// The text as it is, or a tenth of it: that takes its time, so that another thread does it.
async fn page(text: String, format: ExpositionFormat, is_gzipped: bool) -> Response {
    let kind = [
        ("content-type", format.content_type()),
        ("vary", "accept-encoding"),
    ];
    if !is_gzipped {
        return (kind, text).into_response();
    }
    let gzipped = tokio::task::spawn_blocking(move || gzip(text.as_bytes())).await;
    match gzipped.map_err(io::Error::from).flatten() {
        Ok(bytes) => (kind, [("content-encoding", "gzip")], bytes).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Takes the level that the log is to go by.
fn log_level_router(log_level: Option<LogLevel>) -> Router {
    let set = move |level: String| {
        let is_set = log_level.as_ref().is_some_and(|it| it.set(level.trim()));
        async move {
            if is_set {
                (StatusCode::OK, "ok\n")
            } else {
                (StatusCode::BAD_REQUEST, "choose debug, info or error\n")
            }
        }
    };
    Router::new().route(LOG_LEVEL_PATH, put(set))
}

/// Answers questions to the ledger, as JSON.
pub(crate) fn ledger_router(ledger: SharedLedger, parts: PolicyParts) -> Router {
    let answer = move |uri: Uri| {
        let json = why(&ledger, &parts, uri.query().unwrap_or_default());
        async move {
            match json {
                Some(json) => (StatusCode::OK, [("content-type", "application/json")], json),
                None => (
                    StatusCode::BAD_REQUEST,
                    [("content-type", "text/plain")],
                    "ask with ?kind=node|pod|claim|nodepool&name=NAME\n".to_owned(),
                ),
            }
        }
    };
    Router::new().route(LEDGER_PATH, get(answer))
}

/// What the query of an address says of a key, as it is written.
fn query_value<'a>(query: &'a str, key: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| *name == key).map(|it| it.1)
}

fn why(ledger: &SharedLedger, parts: &PolicyParts, query: &str) -> Option<String> {
    // Names of objects need no escape but for the slash between namespace and name.
    let name = query_value(query, "name")?
        .replace("%2F", "/")
        .replace("%2f", "/");
    let subject = Subject::parse(query_value(query, "kind")?, &name)?;
    let ledger = lock(ledger);
    let mut why = Why::of(&ledger, &subject);
    drop(ledger);
    for step in &mut why.steps {
        step.parts = parts(&step.decision_id);
    }
    serde_json::to_string(&why).ok()
}

async fn listen(
    port: u16,
    tls: Option<TlsAcceptor>,
    router: Router,
    what: &str,
) -> anyhow::Result<()> {
    if port == 0 {
        return Ok(());
    }
    let listener = bind(port).await.with_context(|| {
        format!("the {what} port {port} cannot be opened; choose another or 0 for none")
    })?;
    serve_within(ConnectionLimits::USUAL, listener, tls, router).await?;
    Ok(())
}

/// Listens on all addresses, of IPv6 and with it of IPv4; of IPv4 alone where the kernel knows no other.
async fn bind(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
    match listener {
        // A port that is in use is in use under IPv4 too, and the first error tells of it.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpStream;

    use axum::body::Body;
    use axum::http::Request;
    use flate2::read::GzDecoder;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn metrics_are_gzipped_for_who_accepts_that() {
        let text = "# TYPE a counter\na_total 1\n".repeat(1000);
        let told = text.clone();
        let router = metrics_router(Arc::new(move |_| told.clone()));
        for (accepted, is_gzipped) in [(None, false), (Some("gzip"), true), (Some("br"), false)] {
            let mut request = Request::get("/metrics");
            if let Some(accepted) = accepted {
                request = request.header("accept-encoding", accepted);
            }
            let request = request.body(Body::empty()).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::OK);
            let encoding = answer.headers().get("content-encoding").cloned();
            assert_eq!(
                encoding.is_some_and(|it| it == "gzip"),
                is_gzipped,
                "{accepted:?}"
            );
            let kind = answer.headers()["content-type"]
                .to_str()
                .unwrap()
                .to_owned();
            assert!(kind.starts_with("text/plain"), "{kind}");
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let mut read = String::new();
            if is_gzipped {
                assert!(body.len() * 10 < text.len(), "{}", body.len());
                GzDecoder::new(&body[..]).read_to_string(&mut read).unwrap();
            } else {
                read.push_str(std::str::from_utf8(&body).unwrap());
            }
            assert_eq!(read, text);
        }
    }

    #[tokio::test]
    async fn probes_answer_under_ipv4_and_ipv6() {
        let listener = bind(0).await.unwrap();
        let address = listener.local_addr().unwrap();
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, address.port())).is_ok());
        if address.is_ipv6() {
            assert!(TcpStream::connect((Ipv6Addr::LOCALHOST, address.port())).is_ok());
        }
        let again = bind(address.port()).await;
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
