//! Nodes that there are, as policies see them: by pool, type, zone and capacity type.
//!
//! Counted over the whole cluster, so that no call of a round sees less than another. Mirrors the record `usage` of the
//! policy package.

use serde::{Deserialize, Serialize};

/// Nodes by pool and offering; columns have equal length.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageTable {
    /// Symbol of the pool's name.
    pub nodepool: Vec<u32>,
    /// Symbol of the type's name.
    pub instance_type: Vec<u32>,
    /// Symbol of the family.
    pub family: Vec<u32>,
    /// Symbol of the zone.
    pub zone: Vec<u32>,
    /// 0 on-demand, 1 spot, 2 reserved, 255 where nobody knows.
    pub capacity_type: Vec<u8>,
    /// Nodes, those on their way included.
    pub nodes: Vec<u32>,
    /// Those of them that have not registered yet.
    pub launching: Vec<u32>,
    /// USD an hour of one of them, 0 when unknown.
    pub price: Vec<f64>,
}

impl UsageTable {
    /// Number of rows, one per pool and offering.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
