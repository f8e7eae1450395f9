//! The client of the API server: kube's own, but with small read buffers, without idle connections, and behind a guard
//! that keeps to the lease, to a pace and to time limits. What is repeated and what not stands in `repeats.rs`.
//!
//! HTTP/1.1 needs a connection for each watch, and each keeps its read buffer. Left alone, a burst of events makes
//! that 400 KiB, and it stays so for as long as the watch lives. Every request at one time needs one too: the launch
//! of some hundred nodes opens some hundred, which without a timer are never closed.

mod field_owners;
mod guarded;
mod missing_rights;
mod rate;
mod reads_only;
mod repeats;
mod requests;

use std::time::Duration;

use http::HeaderValue;
use http::header::USER_AGENT;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::buffer::BufferLayer;
use tower::{BoxError, ServiceBuilder};

use crate::build_info::{VERSION, go_architecture};

pub(crate) use guarded::Guard;
pub(crate) use missing_rights::MissingRights;
pub(crate) use rate::RateLimiter;
pub(crate) use reads_only::ReadsOnly;
pub(crate) use requests::ClientMetrics;

/// What a connection reads at a time, at most.
const READ_BUFFER_BYTES_MAX: usize = 32 << 10;
/// How long a connection without a request stays open.
const IDLE_CONNECTION_KEPT: Duration = Duration::from_mins(1);

/// Requests that wait for a service that takes one at a time.
const QUEUED_MAX: usize = 1024;

/// Who asks: audit logs, flow schemas and `managedFields` of the API server tell clients apart by it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asker {
    Controller,
    Election,
    /// The metrics port, of who asks it.
    Metrics,
    /// The account of `--cloud simulated`, which writes Nodes as kubelets do.
    Practice,
    Shadow,
    Doctor,
    Policy,
}

impl Asker {
    /// In the form of client-go: program and version, platform, and which part of the program it is.
    fn user_agent(self) -> String {
        let part = match self {
            Self::Controller => "controller",
            Self::Election => "leader-election",
            Self::Metrics => "metrics",
            Self::Practice => "practice",
            Self::Shadow => "shadow",
            Self::Doctor => "doctor",
            Self::Policy => "policy",
        };
        let architecture = go_architecture();
        let os = std::env::consts::OS;
        format!("mortise/{VERSION} ({os}/{architecture}) {part}")
    }
}

/// A client for the cluster that the configuration tells of, which keeps to the guard.
pub(crate) fn client(mut config: Config, guard: &Guard, asker: Asker) -> kube::Result<Client> {
    let user_agent = HeaderValue::try_from(asker.user_agent()).ok();
    config.headers.extend(user_agent.map(|it| (USER_AGENT, it)));
    config.default_retry = false;
    // Ways into a cluster that people have and controllers do not; kube knows them all.
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        let builder = ClientBuilder::try_from(config)?.with_layer(&BufferLayer::new(QUEUED_MAX));
        return Ok(builder.with_layer(guard).build());
    }
    let mut plain = HttpConnector::new();
    plain.enforce_http(false);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(plain)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .http1_max_buf_size(READ_BUFFER_BYTES_MAX)
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION_KEPT)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(guard.clone())
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
