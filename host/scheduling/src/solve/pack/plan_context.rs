//! Sources of a plan: pools, classes and items.
//!
//! Changes nothing, so that plans can be made side by side.

use std::sync::Arc;

use apis::CapacityType;
use smallvec::SmallVec;

use super::items::{ClassId, Item, ItemClass, PackItems};
use super::planned_node::{ItemCount, PlannedNode};
use crate::problem::SPOT_TYPES_MIN;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::{PoolId, PoolTable, RowId};
use crate::solve::input::vocabulary::{Amounts, Vocabulary, add_times};

/// Everything that planning reads and never changes.
#[derive(Debug)]
pub(super) struct PlanContext<'a> {
    pub(super) pools: &'a [PoolTable],
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) classes: &'a [ItemClass],
    pub(super) items: &'a [Item],
    /// Hardest first.
    pub(super) order: Arc<[usize]>,
    /// Rows that can be bought now, by pool; `None` is all of them.
    pub(super) buyable: Vec<Option<BitSet>>,
    pub(super) keeps_min_values: bool,
    pub(super) dimensions: usize,
}

impl<'a> PlanContext<'a> {
    pub(super) fn new(
        pools: &'a [PoolTable],
        vocabulary: &'a Vocabulary,
        items: &'a PackItems,
        order: Arc<[usize]>,
        keeps_min_values: bool,
    ) -> Self {
        Self {
            pools,
            vocabulary,
            classes: &items.classes,
            items: &items.items,
            order,
            buyable: vec![None; pools.len()],
            keeps_min_values,
            dimensions: items.items.first().map_or(0, |item| item.requests.len()),
        }
    }

    pub(super) fn cost(&self, node: &PlannedNode) -> f64 {
        self.pools[node.pool].rows[node.row].effective_cost_per_hour
    }

    /// The rows on which all picks of a node fit, and what they ask for.
    pub(super) fn rows_left(&self, pool: PoolId, picks: &[ItemCount]) -> (BitSet, Amounts) {
        let mut rows = BitSet::full(self.pools[pool].rows.len());
        let mut requests: Amounts = SmallVec::from_elem(0, self.dimensions);
        let mut classes: SmallVec<[ClassId; 8]> = SmallVec::new();
        for ItemCount { item, count } in picks {
            let item = &self.items[*item];
            if !classes.contains(&item.class) {
                classes.push(item.class);
                if let Some(of_class) = &self.classes[item.class].rows[pool] {
                    rows.intersect(of_class);
                }
            }
            let count = i64::try_from(*count).unwrap_or(0);
            add_times(&mut requests, &item.requests, count);
        }
        self.pools[pool].retain_fitting(&mut rows, &requests);
        (rows, requests)
    }

    /// Whether the types left satisfy `minValues`, and for Spot are enough to choose from.
    pub(super) fn is_flexible(
        &self,
        RowId { pool, row }: RowId,
        picks: &[ItemCount],
        rows: &BitSet,
    ) -> bool {
        let table = &self.pools[pool];
        if self.keeps_min_values && table.missed_min_values(rows, self.vocabulary).is_some() {
            return false;
        }
        let class = |item: usize| &self.classes[self.items[item].class];
        table.rows[row].capacity_type != Some(CapacityType::Spot)
            || picks
                .iter()
                .any(|pick| !class(pick.item).has_many_types[pool])
            || self.has_spot_types(pool, rows)
    }

    fn has_spot_types(&self, pool: PoolId, rows: &BitSet) -> bool {
        let table = &self.pools[pool];
        let mut types: SmallVec<[usize; SPOT_TYPES_MIN]> = SmallVec::new();
        for row in rows.iter() {
            let row = &table.rows[row];
            if row.capacity_type == Some(CapacityType::Spot) && !types.contains(&row.type_index) {
                types.push(row.type_index);
                if types.len() == SPOT_TYPES_MIN {
                    return true;
                }
            }
        }
        false
    }
}

/// Hardest first: those that must share a host, then by how few rows there are, how many nodes are needed, and size.
pub(super) fn seed_order(items: &[Item]) -> Arc<[usize]> {
    let key = |item: &Item| {
        let nodes = item.most_per_host.map_or(0, |most| item.count / most);
        (
            !item.shares_one_host,
            item.choices / 64,
            std::cmp::Reverse(nodes),
        )
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|a, b| {
        let (of_a, of_b) = (&items[*a], &items[*b]);
        key(of_a)
            .cmp(&key(of_b))
            .then_with(|| of_b.worth.total_cmp(&of_a.worth))
            .then(a.cmp(b))
    });
    order.into()
}
