//! Gauges of what nodes have, and what pods take of it.
//!
//! Answers to `pkg/controllers/metrics/node`.

use std::fmt;
use std::sync::Arc;

use apis::labels::{WELL_KNOWN_AWS, WELL_KNOWN_CORE};
use apis::resources::Resources;
use prometheus_client::encoding::{EncodeLabel, LabelSetEncoder};
use scheduling::pod::Pod;
use state::StateNode;

use super::{GaugeLabels, Observation, Tell, amount, seconds};
use crate::shell::metrics::labels::{ResourceTypeLabel, WrittenLabels, resource_type};

/// Labels of a node's series. Most are well-known labels as metrics call them, which stand in a table of their own.
pub(super) enum LabelsOfNode {}

/// Labels of a series of each resource of a node.
pub(super) enum LabelsOfNodeResource {}

/// Those of one node, with their values.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodeLabels<'a>(&'a [(&'static str, &'a str)]);

impl GaugeLabels for LabelsOfNode {
    type Scraped<'a> = NodeLabels<'a>;

    fn in_words() -> String {
        "those of the node".to_owned()
    }
}

impl GaugeLabels for LabelsOfNodeResource {
    type Scraped<'a> = (NodeLabels<'a>, ResourceTypeLabel<&'a str>);

    fn in_words() -> String {
        "`resource_type`, and those of the node".to_owned()
    }
}

impl WrittenLabels for NodeLabels<'_> {
    fn encode_labels(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let mut labels = self.0.iter();
        labels.try_for_each(|label| EncodeLabel::encode(label, encoder.encode_label()))
    }
}

pub(super) fn allocatable(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfNodeResource>,
) {
    each(observation, emit, |_, node| {
        Some(node.node()?.allocatable.clone())
    });
}

pub(super) fn system_overhead(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfNodeResource>,
) {
    each(observation, emit, |_, node| {
        let node = node.node()?;
        Some(node.capacity.clone().sub(&node.allocatable))
    });
}

pub(super) fn pod_requests(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfNodeResource>,
) {
    each(observation, emit, |observation, node| {
        Some(observation.snapshot.bound(node).requests().clone())
    });
}

pub(super) fn daemon_requests(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfNodeResource>,
) {
    each(observation, emit, |observation, node| {
        Some(observation.snapshot.bound(node).daemon_requests().clone())
    });
}

pub(super) fn pod_limits(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfNodeResource>) {
    each(observation, emit, |observation, node| {
        Some(limits(observation, node, |_| true))
    });
}

pub(super) fn daemon_limits(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfNodeResource>,
) {
    each(observation, emit, |observation, node| {
        Some(limits(observation, node, Pod::is_owned_by_daemon_set))
    });
}

fn limits(
    observation: &Observation<'_>,
    node: &StateNode,
    counts: impl Fn(&Pod) -> bool,
) -> Resources {
    let mut total = Resources::new();
    let pods = observation.snapshot.bound(node).pods();
    for pod in pods.filter(|it| counts(it)) {
        total.add_assign(&pod.limits);
    }
    total
}

pub(super) fn lifetime(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfNode>) {
    for node in observation.snapshot.nodes() {
        let created = node.node().and_then(|it| it.created_at);
        if let Some(created) = created {
            let labels = labels_of(node);
            emit(NodeLabels(&labels), seconds(created, observation.now));
        }
    }
}

pub(super) fn utilization(observation: &Observation<'_>, emit: &mut Tell<'_, ResourceTypeLabel>) {
    let (mut allocatable, mut requests) = (Resources::new(), Resources::new());
    for node in observation.snapshot.nodes() {
        if node.node().is_some() {
            allocatable.add_assign(&node.allocatable());
            requests.add_assign(observation.snapshot.bound(node).requests());
        }
    }
    for (name, there_is) in allocatable.iter().filter(|it| it.1 > 0) {
        let share = amount(requests.get(name)) / amount(there_is);
        emit(ResourceTypeLabel(&resource_type(name)), 100.0 * share);
    }
}

/// Tells a node's resources, for every node that has a Node.
fn each(
    observation: &Observation<'_>,
    emit: &mut Tell<'_, LabelsOfNodeResource>,
    resources: impl Fn(&Observation<'_>, &Arc<StateNode>) -> Option<Resources>,
) {
    for node in observation.snapshot.nodes() {
        if node.node().is_none() {
            continue;
        }
        let Some(resources) = resources(observation, node) else {
            continue;
        };
        let labels = labels_of(node);
        for (name, millis) in resources.iter() {
            let resource_type = resource_type(name);
            let own = ResourceTypeLabel(resource_type.as_str());
            emit((NodeLabels(&labels), own), amount(millis));
        }
    }
}

fn labels_of(node: &StateNode) -> Vec<(&'static str, &str)> {
    let of_node = node.node();
    let value = |key: &str| {
        let label = of_node.and_then(|it| it.labels.get(key));
        label.map_or("", String::as_str)
    };
    let mut labels: Vec<_> = label_names()
        .map(|(name, key)| (name, value(key)))
        .collect();
    labels.extend([
        ("node_name", of_node.map_or("", |it| it.name.as_str())),
        // Kubernetes has given up the field.
        ("phase", ""),
        ("managed", if node.is_managed() { "true" } else { "false" }),
    ]);
    labels
}

/// Well-known labels: what metrics call them, and their keys.
fn label_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    static NAMES: std::sync::OnceLock<Vec<(String, &'static str)>> = std::sync::OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let keys = WELL_KNOWN_CORE.into_iter().chain(WELL_KNOWN_AWS);
        let named = keys.filter_map(|key| Some((resource_type(key.split_once('/')?.1), key)));
        named.collect()
    });
    names.iter().map(|(name, key)| (name.as_str(), *key))
}
