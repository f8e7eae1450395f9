//! Gauges of pods: where they are, and how long they have waited.
//!
//! Answers to `pkg/controllers/metrics/pod`.

use apis::labels;
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey, PodPhase};

use super::{Observation, Tell, seconds};
use crate::watches::pod_starts::Start;

pub(super) fn state(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    for pod in observation.snapshot.pods() {
        let node = pod.node_name.as_deref();
        let of_node = node.and_then(|name| observation.snapshot.node(name)?.node());
        let label = |key: &str| {
            let label = of_node.and_then(|it| it.labels.get(key));
            label.map_or("", String::as_str)
        };
        let node_pool = label(labels::NODEPOOL);
        emit(
            &[
                ("name", &pod.key.name),
                ("namespace", &pod.key.namespace),
                ("owner", &owner(pod)),
                ("node", node.unwrap_or_default()),
                ("scheduled", truth(node.is_some())),
                ("nodepool", node_pool),
                ("zone", label(labels::TOPOLOGY_ZONE)),
                ("arch", label(labels::ARCH)),
                ("capacity_type", label(labels::CAPACITY_TYPE)),
                ("instance_type", label(labels::INSTANCE_TYPE)),
                ("phase", phase(pod.phase)),
                ("ready", truth(pod.is_ready)),
                ("managed", truth(!node_pool.is_empty())),
            ],
            1.0,
        );
    }
}

/// The path of its owner, as the API server had it once.
fn owner(pod: &Pod) -> String {
    let Some(owner) = &pod.shape.owner else {
        return String::new();
    };
    let (version, namespace) = (&owner.api_version, &pod.key.namespace);
    let kind = owner.kind.to_lowercase();
    format!(
        "/apis/{version}/namespaces/{namespace}/{kind}s/{}",
        owner.name
    )
}

fn phase(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}

fn truth(is_true: bool) -> &'static str {
    if is_true { "true" } else { "false" }
}

pub(super) fn unstarted(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    starts(observation, emit, |start| start.created_at);
}

pub(super) fn provisioning_unstarted(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    starts(observation, emit, |start| start.placed_at);
}

pub(super) fn unbound(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    unbound_since(observation, emit, |start| start.created_at);
}

pub(super) fn provisioning_unbound(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    unbound_since(observation, emit, |start| start.placed_at);
}

fn starts(
    observation: &Observation<'_>,
    emit: &mut Tell<'_>,
    since: impl Fn(&Start) -> Option<Timestamp>,
) {
    observation.known.pod_starts.each(|key, start| {
        if let Some(since) = since(start) {
            emit(&names(key), seconds(since, observation.now));
        }
    });
}

fn unbound_since(
    observation: &Observation<'_>,
    emit: &mut Tell<'_>,
    since: impl Fn(&Start) -> Option<Timestamp>,
) {
    observation.known.pod_starts.each(|key, start| {
        if let Some(since) = since(start).filter(|_| !start.is_bound) {
            let [name, namespace] = names(key);
            let devices = ("dynamic_resources", truth(start.uses_devices));
            emit(&[name, namespace, devices], seconds(since, observation.now));
        }
    });
}

pub(super) fn undecided(observation: &Observation<'_>, emit: &mut Tell<'_>) {
    observation.known.undecided_pods.each(|key, since| {
        emit(&names(key), seconds(since, observation.now));
    });
}

fn names(key: &PodKey) -> [(&'static str, &str); 2] {
    [("name", &key.name), ("namespace", &key.namespace)]
}
