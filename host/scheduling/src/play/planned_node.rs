//! The node that a planned claim is expected to become.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;

use crate::existing_node::ExistingNode;
use crate::problem::Problem;
use crate::requirements::Requirements;
use crate::solution::NewClaim;
use crate::template::requirements_of_template;

/// The node of the claim's best offering, empty and open. The name is one that no node has.
pub(super) fn planned_node(
    problem: &Problem,
    claim: &NewClaim,
    name: &str,
) -> Option<ExistingNode> {
    let pool = problem.pool(&claim.pool)?;
    let best = &claim.best;
    let mut types = pool.instance_types.iter();
    let instance_type = types.find(|it| it.name == best.instance_type)?;
    let offering = instance_type.offering(best.zone.as_deref()?, best.capacity_type?)?;
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
        pool: Some(claim.pool.clone()),
        node_claim: Some(name.to_owned()),
        labels: node_labels,
        taints: pool.node_pool.spec.template.spec.taints.clone(),
        capacity: instance_type.capacity.clone(),
        volume_limits: instance_type.volume_attachment_limits.clone(),
        ..ExistingNode::empty(name, instance_type.allocatable())
    })
}

/// Labels of which only one value is left.
fn determined(requirements: &Requirements) -> impl Iterator<Item = (String, String)> {
    let single = requirements
        .iter()
        .filter(|it| !it.is_complement() && it.values().len() == 1);
    single.filter_map(|it| Some((it.key().to_owned(), it.values().next()?.to_owned())))
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
