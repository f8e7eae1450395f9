//! Gauges of NodePools: their limits, what they have of them, and what it costs.
//!
//! Answers to `pkg/controllers/metrics/nodepool`.

use apis::resources::Resources;
use kube::ResourceExt as _;

use super::{Observation, Tell, amount};
use crate::shell::metrics::labels::{NodePoolLabel, ResourceTypeLabel, resource_type};

type LabelsOfPoolResource = (ResourceTypeLabel, NodePoolLabel);

pub(super) fn limit(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfPoolResource>) {
    for pool in observation.snapshot.node_pools() {
        let limits = pool.spec.limits.as_ref().map(Resources::from_list);
        resources(&pool.name_any(), &limits.unwrap_or_default(), emit);
    }
}

/// As the status has it, so that whoever compares both sees no difference.
pub(super) fn usage(observation: &Observation<'_>, emit: &mut Tell<'_, LabelsOfPoolResource>) {
    for pool in observation.snapshot.node_pools() {
        let usage = pool
            .status
            .as_ref()
            .map(|it| Resources::from_list(&it.resources));
        resources(&pool.name_any(), &usage.unwrap_or_default(), emit);
    }
}

fn resources(pool: &str, resources: &Resources, emit: &mut Tell<'_, LabelsOfPoolResource>) {
    for (name, millis) in resources.iter() {
        let resource_type = resource_type(name);
        let labels = (
            ResourceTypeLabel(resource_type.as_str()),
            NodePoolLabel(pool),
        );
        emit(labels, amount(millis));
    }
}

pub(super) fn cost(observation: &Observation<'_>, emit: &mut Tell<'_, NodePoolLabel>) {
    let costs = observation.known.sold_types.costs(observation.snapshot);
    for pool in observation.snapshot.node_pools() {
        let name = pool.name_any();
        let cost = costs.get(&name).copied().unwrap_or_default();
        emit(NodePoolLabel(&name), cost);
    }
}
