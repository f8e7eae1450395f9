//! Nodes that there are, counted once a call for what rules ask of them.

use std::collections::BTreeMap;

use hooks::ranking::UsageTable;

use super::at;

/// Nodes on an offering.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodesInUse {
    pub(super) all: u32,
    /// Those of them that are on their way.
    pub(super) launching: u32,
}

/// Counts of a usage table.
#[derive(Debug, Default)]
pub(crate) struct UsageIndex {
    /// By type, zone and capacity type, in the whole cluster.
    offerings: BTreeMap<(u32, u32, u8), NodesInUse>,
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
            let in_use = index.offerings.entry(offering).or_default();
            in_use.all = in_use.all.saturating_add(*nodes);
            let launching = at(&table.launching, row);
            in_use.launching = in_use.launching.saturating_add(launching);
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

    /// Nodes on an offering.
    pub(super) fn on(&self, instance_type: u32, zone: u32, capacity_type: u8) -> NodesInUse {
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
