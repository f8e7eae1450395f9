//! Requirements that a NodePool's template puts on the nodes made from it.
//!
//! Answers to `NewNodeClaimTemplate` of Karpenter's `scheduling/nodeclaimtemplate.go`.

use apis::NodePool;
use apis::labels;

use crate::requirements::{Operator, Requirement, Requirements};

/// The requirements of nodes of a pool: its own, its labels, and those every node gets.
pub(crate) fn requirements_of_template(node_pool: &NodePool) -> Requirements {
    let template = &node_pool.spec.template;
    let class = &template.spec.node_class_ref;
    let mut requirements = Requirements::from_template(template);
    let name = node_pool.metadata.name.as_deref().unwrap_or("");
    let class_key = labels::node_class_label(&class.group, &class.kind);
    for (key, value) in [
        (labels::NODEPOOL, name),
        (class_key.as_str(), class.name.as_str()),
        // Simulation only: DaemonSets that select registered or initialized nodes must count.
        (labels::REGISTERED, "true"),
        (labels::INITIALIZED, "true"),
    ] {
        requirements.add(Requirement::new(key, Operator::In, [value]));
    }
    requirements
}
