//! The list price of a node that runs. What it costs in decisions is `appraisal.rs`'s.

use apis::labels;
use scheduling::instance_type::InstanceType;
use state::StateNode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Instance types by NodePool.
pub type TypesByPool = BTreeMap<String, Arc<[Arc<InstanceType>]>>;

/// The list price of a node, USD an hour, where its pool's types have it.
pub fn list_price(types: &TypesByPool, node: &StateNode) -> Option<f64> {
    let of_pool = node.node_pool().and_then(|pool| types.get(pool));
    let mut types = of_pool.into_iter().flat_map(|it| it.iter());
    let name = node.label(labels::INSTANCE_TYPE);
    price_of(types.find(|it| it.name == name)?, node)
}

pub(super) fn price_of(instance_type: &InstanceType, node: &StateNode) -> Option<f64> {
    let zone = node.label(labels::TOPOLOGY_ZONE);
    let offering = instance_type.offering(zone, node.capacity_type()?);
    offering.map(|it| it.price_per_hour)
}
