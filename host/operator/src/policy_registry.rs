//! Joins the controllers' port for policies to the Wasm host, so that neither knows of the other.

use std::collections::BTreeMap;

use controllers::{
    BindingReport, BindingSource, BindingState, InCharge, NodePoolLabels, PolicyRegistry,
};
use policy::{Authority, BindingKey, BindingStatus, OnFailure, PolicyHost};

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
        let source = source_of(source);
        match tokio::task::spawn_blocking(move || host.apply(&source)).await {
            Ok(status) => report(status),
            Err(error) => BindingReport::refused(
                "LoaderFailed",
                format!("the loader of policies failed: {error}"),
            ),
        }
    }

    async fn remove(&self, namespace: &str, name: &str) {
        let key = BindingKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.host.remove_binding(&key);
    }

    fn named(&self, source: &BindingSource) -> Vec<String> {
        // Annotations and data are enough, and a component is large.
        let source = BindingSource {
            annotations: source.annotations.clone(),
            data: source.data.clone(),
            ..BindingSource::default()
        };
        source_of(source).named()
    }

    fn tell_node_pools(&self, pools: NodePoolLabels) {
        self.host.tell_node_pools(pools);
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

fn source_of(source: BindingSource) -> policy::BindingSource {
    let BindingSource {
        namespace,
        name,
        labels,
        annotations,
        data,
        binary_data,
        others,
        uid: _,
        resource_version: _,
    } = source;
    let other = |it: controllers::OtherConfigMap| policy::OtherConfigMap {
        data: it.data,
        binary_data: it.binary_data,
    };
    let others = others.into_iter().map(|(name, it)| (name, other(it)));
    policy::BindingSource {
        namespace,
        name,
        labels,
        annotations,
        data,
        binary_data,
        others: others.collect::<BTreeMap<_, _>>(),
    }
}

fn report(status: BindingStatus) -> BindingReport {
    let BindingStatus {
        key: _,
        state,
        digest,
        reason,
        message,
        in_charge: charge,
        calls,
        failures,
    } = status;
    BindingReport {
        state: match state {
            policy::BindingState::Ready => BindingState::Ready,
            policy::BindingState::Degraded => BindingState::Degraded,
            policy::BindingState::Quarantined => BindingState::Quarantined,
        },
        digest,
        reason,
        message,
        in_charge: charge.map(in_charge),
        calls,
        failures,
    }
}

/// In the words of a binding.
fn in_charge(charge: policy::InCharge) -> InCharge {
    let policy::InCharge {
        mode,
        order,
        on_failure,
        authority,
        applies_to,
    } = charge;
    let policy::AppliesTo {
        names,
        total,
        unmatched,
    } = applies_to.unwrap_or_default();
    let on_failure = match on_failure {
        OnFailure::Default => "default",
        OnFailure::Hold => "hold",
    };
    let authority = match authority {
        Authority::Lower => "lower",
        Authority::Replace => "replace",
    };
    InCharge {
        mode: mode.to_string(),
        order,
        on_failure: on_failure.to_owned(),
        authority: authority.to_owned(),
        node_pools: names,
        node_pools_total: total,
        unmatched,
    }
}
