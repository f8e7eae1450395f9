//! The instance types of a node's pool, and the list price of a node by them. What it costs in decisions is
//! `appraisal.rs`'s.

use std::sync::Arc;

use planning::provisioning::TypesByPool;
use scheduling::instance_type::InstanceType;
use state::StateNode;

/// The instance types of a pool, none if unknown.
pub(crate) fn types_of<'a>(types: &'a TypesByPool, pool: &str) -> &'a [Arc<InstanceType>] {
    types.get(pool).map_or(&[], |it| &**it)
}

/// The list price of a node, USD an hour, where its pool's types have it.
pub fn list_price(types: &TypesByPool, node: &StateNode) -> Option<f64> {
    let mut types = types_of(types, node.node_pool()?).iter();
    let name = node.instance_type()?;
    list_price_by(types.find(|it| it.name == name)?, node)
}

/// The list price of a node of this instance type: that of the offering it was bought by, which for a reserved one is
/// its own reservation.
pub fn list_price_by(instance_type: &InstanceType, node: &StateNode) -> Option<f64> {
    let (zone, capacity_type) = (node.zone(), node.capacity_type()?);
    let mut offerings = instance_type.offerings.iter();
    let offering = offerings.find(|it| {
        it.zone() == zone
            && it.capacity_type() == Some(capacity_type)
            && it.reservation_id() == node.reservation_id()
    });
    offering.map(|it| it.price_per_hour)
}
