//! The least that the pods of a problem could cost: what no plan undercuts, however clever.
//!
//! Every node is taken to be full to the last byte of the pods that suit it best; constraints, daemons and the sizes of
//! pods are left out. So a plan of real nodes is dearer, by some percent where few pods share a node.

use apis::resources::Resources;

use super::input::prepared::Prepared;
use super::input::unit_price::best_mix;
use crate::problem::Problem;

/// Dollars an hour by list price; none where nodes exist that may take pods, or nothing is sold.
pub fn lower_bound_per_hour(problem: &Problem, prepared: &Prepared) -> Option<f64> {
    if !problem.nodes.is_empty() {
        return None;
    }
    let mut demand = Resources::new();
    for pod in &problem.pods {
        demand.add_assign(&pod.shape.requests);
    }
    let share = |amount: i64, of: i64| amount as f64 / of.max(1) as f64;
    let pools = prepared.pool_names();
    let sales = pools.filter_map(|pool| prepared.sales(pool)).flatten();
    let offers = sales.map(|sale| {
        // What is free buys without end, and nothing is a lower bound then.
        let price = sale.price_per_hour().max(1e-300);
        let allocatable = sale.instance_type.allocatable();
        let cpu = share(allocatable.cpu_millis(), demand.cpu_millis());
        let memory = share(allocatable.memory_bytes(), demand.memory_bytes());
        (cpu / price, memory / price)
    });
    let offers: Vec<(f64, f64)> = offers.collect();
    best_mix(&offers).map(|it| it.worth)
}
