//! `client_go_request_*`: requests to the API server, by what they ask and what came of them.
//!
//! Answers to the adapter of client-go's metrics in Karpenter's `pkg/operator/operator.go`.

use std::time::Duration;

use http::{Method, Uri};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

type ClientLabels = Vec<(&'static str, String)>;

/// Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct ClientMetrics {
    /// Labels: `code`, `method`.
    total: Family<ClientLabels, Counter>,
    /// Labels: `verb`, `group`, `version`, `kind`, `subresource`.
    seconds: Family<ClientLabels, Histogram, fn() -> Histogram>,
}

fn buckets() -> Histogram {
    Histogram::new((0..20).map(|exponent| 0.001 * 1.5_f64.powi(exponent)))
}

impl Default for ClientMetrics {
    fn default() -> Self {
        Self {
            total: Family::default(),
            seconds: Family::new_with_constructor(buckets),
        }
    }
}

impl ClientMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let Self { total, seconds } = self;
        registry.register(
            "client_go_request",
            "Requests to the API server",
            total.clone(),
        );
        registry.register(
            "client_go_request_duration_seconds",
            "Time of requests to the API server, of watches until they begin",
            seconds.clone(),
        );
    }

    /// A request was answered with the status, or not at all.
    pub(super) fn observe_answer(&self, asked: &AskedFor, status: Option<u16>, took: Duration) {
        let code = status.map_or_else(|| "<error>".to_owned(), |it| it.to_string());
        let method = asked.method.to_string();
        let labels = vec![("code", code), ("method", method.clone())];
        self.total.get_or_create(&labels).inc();
        let AskedFor {
            method: _,
            group,
            version,
            resource,
            subresource,
        } = asked;
        let labels = vec![
            ("verb", method),
            ("group", group.clone()),
            ("version", version.clone()),
            ("kind", resource.clone()),
            ("subresource", subresource.clone()),
        ];
        let seconds = self.seconds.get_or_create(&labels);
        seconds.observe(took.as_secs_f64());
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AskedFor {
    method: Method,
    group: String,
    version: String,
    resource: String,
    subresource: String,
}

impl AskedFor {
    pub(super) fn of(method: &Method, uri: &Uri) -> Self {
        let mut parts = uri.path().split('/').filter(|it| !it.is_empty());
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let (group, version) = match part().as_str() {
            "apis" => (part(), part()),
            "api" => (String::new(), part()),
            other => (String::new(), other.to_owned()),
        };
        let mut rest: Vec<&str> = parts.collect();
        // Objects in a namespace, not the namespace itself or its subresources.
        let is_within = rest.first() == Some(&"namespaces") && rest.len() > 2;
        if is_within && !matches!(rest.get(2), Some(&"status" | &"finalize")) {
            rest.drain(..2);
        }
        let at = |place: usize| rest.get(place).copied().unwrap_or_default().to_owned();
        Self {
            method: method.clone(),
            group,
            version,
            resource: at(0),
            subresource: at(2),
        }
    }
}

#[cfg(test)]
mod tests;
