//! Nodes that there are, counted by pool, type, zone and capacity type.

use std::collections::BTreeMap;

use hooks::ranking::{Symbols, UsageTable};

use crate::instance_type::OfferingKey;

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

/// The table, one row a key, in order of the keys.
pub(crate) fn usage_table(usage: &BTreeMap<UsageKey, Usage>, symbols: &mut Symbols) -> UsageTable {
    let mut table = UsageTable::default();
    for (key, count) in usage {
        let UsageKey { pool, offering } = key;
        let family = offering.instance_type.split('.').next().unwrap_or("");
        let capacity_type = offering.capacity_type.unwrap_or_default();
        table.nodepool.push(symbols.intern(pool));
        table
            .instance_type
            .push(symbols.intern(&offering.instance_type));
        table.family.push(symbols.intern(family));
        let zone = offering.zone.as_deref().unwrap_or_default();
        table.zone.push(symbols.intern(zone));
        table.capacity_type.push(capacity_type.code());
        table.nodes.push(count.nodes);
        table.launching.push(count.launching);
        table.price.push(count.price_per_hour);
    }
    table
}
