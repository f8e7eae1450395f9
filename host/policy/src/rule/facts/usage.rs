//! Nodes that there are, counted once a call for what rules ask of them.

use std::collections::BTreeMap;

use hooks::ranking::UsageTable;

use super::at;

/// Counts of a usage table.
#[derive(Debug, Default)]
pub(crate) struct UsageIndex {
    /// By type, zone and capacity type, in the whole cluster: nodes, and those of them on their way.
    offerings: BTreeMap<(u32, u32, u8), (u32, u32)>,
    /// Nodes by NodePool.
    pools: BTreeMap<u32, u32>,
    /// By NodePool and zone.
    zones: BTreeMap<(u32, u32), u32>,
    /// By NodePool and capacity type.
    capacity_types: BTreeMap<(u32, u8), u32>,
}

impl UsageIndex {
    pub(crate) fn new(table: &UsageTable) -> Self {
        let mut index = Self::default();
        for (row, nodes) in table.nodes.iter().enumerate() {
            let (pool, zone) = (at(&table.nodepool, row), at(&table.zone, row));
            let capacity_type = at(&table.capacity_type, row);
            let offering = (at(&table.instance_type, row), zone, capacity_type);
            let (all, launching) = index.offerings.entry(offering).or_default();
            *all = all.saturating_add(*nodes);
            *launching = launching.saturating_add(at(&table.launching, row));
            for count in [
                index.pools.entry(pool).or_default(),
                index.zones.entry((pool, zone)).or_default(),
                index
                    .capacity_types
                    .entry((pool, capacity_type))
                    .or_default(),
            ] {
                *count = count.saturating_add(*nodes);
            }
        }
        index
    }

    /// Nodes on an offering, and those of them on their way.
    pub(super) fn on(&self, instance_type: u32, zone: u32, capacity_type: u8) -> (u32, u32) {
        let offering = (instance_type, zone, capacity_type);
        self.offerings.get(&offering).copied().unwrap_or_default()
    }

    pub(super) fn of_pool(&self, pool: u32) -> u32 {
        self.pools.get(&pool).copied().unwrap_or_default()
    }

    pub(super) fn in_zone(&self, pool: u32, zone: u32) -> u32 {
        self.zones.get(&(pool, zone)).copied().unwrap_or_default()
    }

    pub(super) fn of_capacity_type(&self, pool: u32, capacity_type: u8) -> u32 {
        let count = self.capacity_types.get(&(pool, capacity_type));
        count.copied().unwrap_or_default()
    }
}
