//! The node that a planned claim is expected to become.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;

use crate::existing_node::ExistingNode;
use crate::problem::{DaemonPod, Problem};
use crate::requirements::Requirements;
use crate::solution::NewClaim;
use crate::taints;
use crate::template::requirements_of_template;

/// The node of the claim's best offering, empty and open. The name is one that no node has.
pub(super) fn planned_node(
    problem: &Problem,
    claim: &NewClaim,
    name: &str,
) -> Option<ExistingNode> {
    let pool = problem.pools.iter().find(|it| {
        let own = it.node_pool.metadata.name.as_deref();
        own == Some(claim.pool.as_str())
    })?;
    let best = &claim.best;
    let mut types = pool.instance_types.iter();
    let instance_type = types.find(|it| it.name == best.instance_type)?;
    let offering = instance_type.offering(&best.zone, best.capacity_type?)?;
    let mut node_labels = BTreeMap::new();
    for requirements in [
        &instance_type.requirements,
        &requirements_of_template(&pool.node_pool),
        &claim.requirements,
        &offering.requirements,
    ] {
        node_labels.extend(determined(requirements));
    }
    node_labels.insert(labels::HOSTNAME.to_owned(), name.to_owned());
    Some(ExistingNode {
        name: name.to_owned(),
        hostname: name.to_owned(),
        pool: Some(claim.pool.clone()),
        node_claim: Some(name.to_owned()),
        labels: node_labels,
        taints: pool.node_pool.spec.template.spec.taints.clone(),
        capacity: instance_type.capacity.clone(),
        allocatable: instance_type.allocatable(),
        pods: Vec::new(),
        requests: Resources::new(),
        daemon_requests: Resources::new(),
        is_initialized: true,
        is_schedulable: true,
        is_within_consolidate_after: false,
        volume_limits: instance_type.volume_attachment_limits.clone(),
        volumes: BTreeMap::new(),
    })
}

/// Labels of which only one value is left.
fn determined(requirements: &Requirements) -> impl Iterator<Item = (String, String)> {
    let single = requirements
        .iter()
        .filter(|it| !it.is_complement() && it.values().len() == 1);
    single.filter_map(|it| Some((it.key().to_owned(), it.values().next()?.to_owned())))
}

/// What DaemonSets may still claim of a node.
pub(super) fn outstanding(node: &ExistingNode, daemons: &[DaemonPod]) -> Resources {
    let mut sum = Resources::new();
    for daemon in daemons {
        let shape = &daemon.shape;
        let mut hard = node.taints.iter().filter(|it| !taints::is_preference(it));
        let is_tolerated = hard.all(|taint| {
            shape
                .tolerations
                .iter()
                .any(|it| taints::tolerates(it, taint))
        });
        let selector = Requirements::from_labels(&shape.node_selector);
        let mut terms = shape.required_node_affinity.iter();
        let is_selected = selector.iter().all(|it| node.meets(it))
            && (shape.required_node_affinity.is_empty()
                || terms.any(|terms| terms.iter().all(|it| node.meets(it))));
        if is_tolerated && is_selected && !shape.uses_resource_claims {
            sum.add_assign(&shape.requests);
        }
    }
    let left = sum.iter().map(|(name, amount)| {
        let there = node.daemon_requests.get(name);
        (name.to_owned(), amount.saturating_sub(there).max(0))
    });
    left.collect()
}

/// A node with more pods on it.
pub(super) fn with_pods(
    node: &ExistingNode,
    pods: impl Iterator<Item = Arc<crate::pod::Pod>>,
) -> ExistingNode {
    let mut node = node.clone();
    for pod in pods {
        node.requests.add_assign(&pod.shape.requests);
        node.pods.push(pod);
    }
    node
}
