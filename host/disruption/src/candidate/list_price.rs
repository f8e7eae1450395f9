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
    list_price_by(types.find(|it| it.name == name)?, node)
}

/// The list price of a node of this instance type: that of the offering it was bought by, which for a reserved one is
/// its own reservation.
pub fn list_price_by(instance_type: &InstanceType, node: &StateNode) -> Option<f64> {
    let (zone, capacity_type) = (node.label(labels::TOPOLOGY_ZONE), node.capacity_type()?);
    let mut offerings = instance_type.offerings.iter();
    let offering = offerings.find(|it| {
        it.zone() == zone
            && it.capacity_type() == Some(capacity_type)
            && it.reservation_id() == node.reservation_id()
    });
    offering.map(|it| it.price_per_hour)
}
