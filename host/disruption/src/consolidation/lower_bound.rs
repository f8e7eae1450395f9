//! A lower bound on what resources cost, to leave out simulations that could not save enough.
//!
//! Never too high: real nodes are dearer, as they are neither full nor all of the best type.

use apis::resources::Resources;
use scheduling::Prepared;

/// The least that a thousandth of a CPU and a byte of memory cost in any pool, were a node of the best type full.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowerBound {
    per_cpu_milli: f64,
    per_memory_byte: f64,
}

impl LowerBound {
    /// Over all pools that may buy.
    pub(crate) fn of(prepared: &Prepared) -> Self {
        let (mut per_cpu_milli, mut per_memory_byte) = (f64::INFINITY, f64::INFINITY);
        for sale in prepared
            .pool_names()
            .filter_map(|it| prepared.sales(it))
            .flatten()
        {
            let allocatable = sale.instance_type.allocatable();
            let per = |amount: i64| sale.effective_cost_per_hour / amount.max(1) as f64;
            per_cpu_milli = per_cpu_milli.min(per(allocatable.cpu_millis()));
            per_memory_byte = per_memory_byte.min(per(allocatable.memory_bytes()));
        }
        Self {
            per_cpu_milli,
            per_memory_byte,
        }
    }

    /// Least cost of so much CPU and memory, effective USD an hour.
    pub(crate) fn cost_per_hour(&self, needed: &Resources) -> f64 {
        let of = |amount: i64, cost: f64| {
            if amount > 0 {
                amount as f64 * cost
            } else {
                0.0
            }
        };
        let cpu = of(needed.cpu_millis(), self.per_cpu_milli);
        cpu.max(of(needed.memory_bytes(), self.per_memory_byte))
    }
}
