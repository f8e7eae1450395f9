//! Nodes that there are, counted by pool, type, zone and capacity type.

use std::collections::BTreeMap;

use apis::CapacityType;
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
    /// USD an hour of one of them, where it is known.
    pub price_per_hour: Option<f64>,
}

/// The table, one row a key, in order of the keys.
pub(crate) fn usage_table(usage: &BTreeMap<UsageKey, Usage>, symbols: &mut Symbols) -> UsageTable {
    let mut table = UsageTable::default();
    for (key, count) in usage {
        let UsageKey { pool, offering } = key;
        let family = offering.instance_type.split('.').next().unwrap_or("");
        table.nodepool.push(symbols.intern(pool));
        table
            .instance_type
            .push(symbols.intern(&offering.instance_type));
        table.family.push(symbols.intern(family));
        let zone = offering.zone.as_deref().unwrap_or_default();
        table.zone.push(symbols.intern(zone));
        let capacity_type = CapacityType::code_of(offering.capacity_type);
        table.capacity_type.push(capacity_type);
        table.nodes.push(count.nodes);
        table.launching.push(count.launching);
        table.price.push(count.price_per_hour.unwrap_or(0.0));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apis::labels;
    use apis::resources::Resources;

    use super::*;
    use crate::instance_type::{InstanceType, Offering, Overhead};
    use crate::ranking::table::offering_table;
    use crate::requirements::{Operator, Requirement, Requirements};

    #[test]
    fn policies_are_told_that_a_capacity_type_is_unknown() {
        for (word, expected) in [("spot", 1), ("capacity-block", u8::MAX)] {
            let capacity_type = CapacityType::parse(word);
            let key = UsageKey {
                pool: "web".to_owned(),
                offering: OfferingKey {
                    instance_type: "m7i.large".to_owned(),
                    zone: Some("a".to_owned()),
                    capacity_type,
                },
            };
            let usage = BTreeMap::from([(key, Usage::default())]);
            let mut symbols = Symbols::default();
            let table = usage_table(&usage, &mut symbols);
            assert_eq!(table.capacity_type, [expected], "{word}");
            let sold = Requirement::new(labels::CAPACITY_TYPE, Operator::In, [word]);
            let instance_type = InstanceType {
                name: "m7i.large".to_owned(),
                requirements: Requirements::default(),
                offerings: vec![Offering::new([sold].into_iter().collect(), 1.0)],
                capacity: Resources::new(),
                overhead: Overhead::default(),
                volume_attachment_limits: BTreeMap::new(),
            };
            let (table, _) = offering_table(&[Arc::new(instance_type)], &mut symbols);
            assert_eq!(table.capacity_type, [expected], "{word}");
        }
    }
}
