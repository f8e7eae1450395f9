//! What a unit of CPU and of memory is worth to a class of pods: the dual prices of buying its whole demand from the
//! offerings open to it.
//!
//! The packer compares nodes by what their pods are worth, so a pod that could live on cheap offerings never pays for
//! expensive ones.

use super::bitset::BitSet;
use super::pool_rows::RowValue;
use super::pool_table::PoolTable;

const CPU: usize = 0;
const MEMORY: usize = 1;
/// The steps of the search for the best mix of CPU and memory; each narrows it by a third.
const STEPS: usize = 16;

/// Dollars an hour per thousandth of each resource.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct UnitPrice {
    pub(crate) cpu: f64,
    pub(crate) memory: f64,
}

impl UnitPrice {
    /// What these amounts are worth.
    pub(crate) fn of(self, amounts: &[i64]) -> f64 {
        self.cpu * amounts[CPU] as f64 + self.memory * amounts[MEMORY] as f64
    }

    /// What a whole node is worth.
    pub(crate) fn of_value(self, value: &RowValue) -> f64 {
        self.cpu * value.cpu + self.memory * value.memory
    }
}

/// Prices per unit that no row undercuts and that make the demand worth most: the dual of covering it.
pub(crate) fn unit_price(table: &PoolTable, rows: &BitSet, demand: &[i64]) -> UnitPrice {
    let (cpu, memory) = (demand[CPU].max(1) as f64, demand[MEMORY].max(1) as f64);
    let offers: Vec<(f64, f64)> = table
        .best_values(rows)
        .map(|value| {
            (
                value.cpu / cpu / value.cost,
                value.memory / memory / value.cost,
            )
        })
        .collect();
    let Some(Mix { cpu_share, worth }) = best_mix(&offers) else {
        return UnitPrice::default();
    };
    UnitPrice {
        cpu: cpu_share * worth / cpu,
        memory: (1.0 - cpu_share) * worth / memory,
    }
}

/// How the worth of a demand is shared between CPU and memory, and what all of it is worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) cpu_share: f64,
    pub(crate) worth: f64,
}

/// The mix that makes a demand worth most. Each offer is what a dollar an hour buys of the demand's CPU and memory, as
/// shares of the whole; none undercuts what comes of it.
pub(crate) fn best_mix(offers: &[(f64, f64)]) -> Option<Mix> {
    if offers.is_empty() {
        return None;
    }
    // With a share λ of the demand's worth in CPU, the best row gives max(λ·c + (1−λ)·m) per dollar; the dual takes
    // the λ for which that is least. It is convex in λ.
    let best = |lambda: f64| {
        offers
            .iter()
            .map(|(c, m)| lambda * c + (1.0 - lambda) * m)
            .fold(f64::MIN, f64::max)
    };
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        if best(low + third) <= best(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    let cpu_share = f64::midpoint(low, high);
    Some(Mix {
        cpu_share,
        worth: 1.0 / best(cpu_share).max(1e-300),
    })
}
