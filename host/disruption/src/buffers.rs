//! Which nodes hold the room of CapacityBuffers: as a provisioning pass would find it now, not as one found it.

use std::collections::BTreeSet;

use apis::NodeRef;
use planning::capacity_buffer;
use scheduling::{Prepared, TableCache, solve_prepared};

use crate::simulation::SimulationInput;

/// The nodes that pods of buffers would be placed on.
pub(crate) fn nodes(world: &SimulationInput<'_>, tables: &TableCache) -> BTreeSet<NodeRef> {
    let snapshot = world.snapshot;
    if snapshot.capacity_buffers().len() == 0 {
        return BTreeSet::new();
    }
    let options = world.options.clone();
    let problem = world.problem(world.pools, options);
    let prepared = Prepared::new(&problem, world.rank, tables);
    let solution = solve_prepared(&problem, &prepared, world.interrupt);
    capacity_buffer::nodes(snapshot, &solution)
}
