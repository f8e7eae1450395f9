//! Joins the controllers' port for policies to the Wasm host, so that neither knows of the other.

use controllers::{BindingReport, BindingSource, BindingState, PolicyRegistry};
use policy::{BindingKey, BindingStatus, PolicyHost};

/// Hands bindings to the host on a thread for blocking work: compiling a module takes a while.
pub(crate) struct PolicyBinder {
    host: PolicyHost,
}

impl PolicyBinder {
    pub(crate) fn new(host: PolicyHost) -> Self {
        Self { host }
    }
}

#[async_trait::async_trait]
impl PolicyRegistry for PolicyBinder {
    async fn apply(&self, source: BindingSource) -> BindingReport {
        let host = self.host.clone();
        let BindingSource {
            namespace,
            name,
            labels,
            annotations,
            data,
            binary_data,
            uid: _,
            resource_version: _,
        } = source;
        let source = policy::BindingSource {
            namespace,
            name,
            labels,
            annotations,
            data,
            binary_data,
        };
        match tokio::task::spawn_blocking(move || host.apply(&source)).await {
            Ok(status) => report(status),
            Err(error) => BindingReport {
                state: BindingState::Degraded,
                digest: None,
                reason: "LoaderFailed".to_owned(),
                message: format!("the loader of policies failed: {error}"),
            },
        }
    }

    async fn remove(&self, namespace: &str, name: &str) {
        let key = BindingKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.host.remove_binding(&key);
    }

    fn report(&self, namespace: &str, name: &str) -> Option<BindingReport> {
        let key = BindingKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.host.status(&key).map(report)
    }

    fn failures(&self, namespace: &str, name: &str) -> Vec<String> {
        for event in self.host.drain_events_of_defaults() {
            tracing::error!(
                kind = event.kind.as_str(),
                reason = event.reason,
                "{}",
                event.message
            );
        }
        let key = BindingKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let events = self.host.drain_events_of(&key).into_iter();
        events
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect()
    }
}

fn report(status: BindingStatus) -> BindingReport {
    BindingReport {
        state: match status.state {
            policy::BindingState::Ready => BindingState::Ready,
            policy::BindingState::Degraded => BindingState::Degraded,
            policy::BindingState::Quarantined => BindingState::Quarantined,
        },
        digest: status.digest,
        reason: status.reason,
        message: status.message,
    }
}
