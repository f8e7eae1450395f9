//! `/metrics`, `/healthz` and `/readyz`, on Karpenter's ports.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

/// What the probes and the scrape ask.
#[derive(Clone)]
pub(crate) struct Probes {
    /// Whether the caches have been filled once.
    pub(crate) is_ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The metrics in the text format of OpenMetrics.
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

/// Serves both ports until the process ends; a port of 0 is not served.
pub(crate) async fn serve(
    probes: Probes,
    metrics_port: u16,
    health_port: u16,
) -> anyhow::Result<()> {
    let metrics = Arc::clone(&probes.metrics);
    let metrics_router = Router::new().route(
        "/metrics",
        get(move || {
            let text = metrics();
            async move {
                (
                    [(
                        "content-type",
                        "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    )],
                    text,
                )
            }
        }),
    );
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
        listen(metrics_port, metrics_router, "metrics"),
        listen(health_port, health_router, "health probe")
    )?;
    Ok(())
}

async fn listen(port: u16, router: Router, what: &str) -> anyhow::Result<()> {
    if port == 0 {
        return Ok(());
    }
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("the {what} port {port} cannot be opened; choose another or 0 for none")
    })?;
    axum::serve(listener, router).await?;
    Ok(())
}
