//! Nodes that there are, as policies see them: by pool, type, zone and capacity type.
//!
//! Counted over the whole cluster, so that no call of a round sees less than another. Mirrors the record `usage` of the
//! policy package.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Symbols;
use super::table::capacity_type_code;
use crate::market::CapacityType;
use crate::problem::OfferingKey;

/// Whose node it is, and what it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageKey {
    /// Name of the pool.
    pub pool: String,
    /// Type, zone and capacity type.
    pub offering: OfferingKey,
}

/// Nodes of one key.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Nodes, those on their way included.
    pub nodes: u32,
    /// Those of them that have not registered yet.
    pub launching: u32,
    /// USD an hour of one of them, 0 when unknown.
    pub price_per_hour: f64,
}

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
    /// 0 on-demand, 1 spot, 2 reserved.
    pub capacity_type: Vec<u8>,
    /// Nodes, those on their way included.
    pub nodes: Vec<u32>,
    /// Those of them that have not registered yet.
    pub launching: Vec<u32>,
    /// USD an hour of one of them, 0 when unknown.
    pub price: Vec<f64>,
}

impl UsageTable {
    /// The table, one row a key, in order of the keys.
    pub fn new(usage: &BTreeMap<UsageKey, Usage>, symbols: &mut Symbols) -> Self {
        let mut table = Self::default();
        for (key, count) in usage {
            let UsageKey { pool, offering } = key;
            let family = offering.instance_type.split('.').next().unwrap_or("");
            let capacity_type = CapacityType::parse(&offering.capacity_type);
            table.nodepool.push(symbols.intern(pool));
            table
                .instance_type
                .push(symbols.intern(&offering.instance_type));
            table.family.push(symbols.intern(family));
            table.zone.push(symbols.intern(&offering.zone));
            table.capacity_type.push(capacity_type_code(capacity_type));
            table.nodes.push(count.nodes);
            table.launching.push(count.launching);
            table.price.push(count.price_per_hour);
        }
        table
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
