//! Gauges of pods: where they are, and how long they have waited.
//!
//! Answers to `pkg/controllers/metrics/pod`.

use apis::labels;
use jiff::Timestamp;
use scheduling::pod::{Pod, PodKey, PodPhase};

use super::{Observation, Tell, seconds};
use crate::shell::metrics::labels::{
    ArchitectureLabel, CapacityTypeLabel, DynamicResourcesLabel, InstanceTypeLabel, ManagedLabel,
    NamespaceLabel, NodeNameLabel, NodePoolLabel, OwnerLabel, PhaseLabel, PodNameLabel, ReadyLabel,
    ScheduledLabel, ZoneLabel,
};
use crate::watches::pod_starts::Start;

pub(super) type PodNames<V = String> = (PodNameLabel<V>, NamespaceLabel<V>);
type LabelsOfPlace = (NodeNameLabel, ScheduledLabel, NodePoolLabel, ZoneLabel);
type LabelsOfMachine = (ArchitectureLabel, CapacityTypeLabel, InstanceTypeLabel);
type LabelsOfLife = (PhaseLabel, ReadyLabel, ManagedLabel);
pub(super) type LabelsOfUnbound = (PodNames, DynamicResourcesLabel);
pub(super) type LabelsOfState = (
    PodNames,
    OwnerLabel,
    LabelsOfPlace,
    LabelsOfMachine,
    LabelsOfLife,
);

pub(super) fn state(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfState>) {
    for pod in observation.snapshot.pods() {
        let node = pod.node_name.as_deref();
        let of_node = node.and_then(|name| observation.snapshot.node(name)?.node());
        let label = |key: &str| {
            let label = of_node.and_then(|it| it.labels.get(key));
            label.map_or("", String::as_str)
        };
        let node_pool = label(labels::NODEPOOL);
        let owner = owner(pod);
        let place = (
            NodeNameLabel(node.unwrap_or_default()),
            ScheduledLabel(truth(node.is_some())),
            NodePoolLabel(node_pool),
            ZoneLabel(label(labels::TOPOLOGY_ZONE)),
        );
        let machine = (
            ArchitectureLabel(label(labels::ARCH)),
            CapacityTypeLabel(label(labels::CAPACITY_TYPE)),
            InstanceTypeLabel(label(labels::INSTANCE_TYPE)),
        );
        let life = (
            PhaseLabel(phase(pod.phase)),
            ReadyLabel(truth(pod.is_ready)),
            ManagedLabel(truth(!node_pool.is_empty())),
        );
        let owner = OwnerLabel(owner.as_str());
        emit((names(&pod.key), owner, place, machine, life), 1.0);
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

pub(super) fn unstarted(observation: &Observation<'_>, emit: &mut Tell<'_, PodNames>) {
    starts(observation, emit, |start| start.created_at);
}

pub(super) fn provisioning_unstarted(observation: &Observation<'_>, emit: &mut Tell<'_, PodNames>) {
    starts(observation, emit, |start| start.placed_at);
}

pub(super) fn unbound(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfUnbound>) {
    unbound_since(observation, emit, |start| start.created_at);
}

pub(super) fn provisioning_unbound(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfUnbound>,
) {
    unbound_since(observation, emit, |start| start.placed_at);
}

fn starts(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, PodNames>,
    since: impl Fn(&Start) -> Option<Timestamp>,
) {
    observation.known.pod_starts.each(|key, start| {
        if let Some(since) = since(start) {
            emit(names(key), seconds(since, observation.now));
        }
    });
}

fn unbound_since(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfUnbound>,
    since: impl Fn(&Start) -> Option<Timestamp>,
) {
    observation.known.pod_starts.each(|key, start| {
        if let Some(since) = since(start).filter(|_| !start.is_bound) {
            let devices = DynamicResourcesLabel(truth(start.uses_devices));
            emit((names(key), devices), seconds(since, observation.now));
        }
    });
}

pub(super) fn undecided(observation: &Observation<'_>, emit: &mut Tell<'_, PodNames>) {
    observation.known.undecided_pods.each(|key, since| {
        emit(names(key), seconds(since, observation.now));
    });
}

fn names(key: &PodKey) -> PodNames<&str> {
    (PodNameLabel(&key.name), NamespaceLabel(&key.namespace))
}
