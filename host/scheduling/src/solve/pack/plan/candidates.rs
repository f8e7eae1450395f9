//! Which rows are worth trying for a node.

use super::Planner;
use crate::solve::input::pool_table::{PoolId, PoolTable};

/// Offerings tried for one node, at most.
const CANDIDATES_MAX: usize = 40;

/// Of these, how many of each size (by powers of two of CPU).
const CANDIDATES_PER_SIZE: usize = 4;

impl Planner<'_> {
    /// The rows worth trying: those that give the seed's class most for the money, some of every size.
    pub(super) fn candidates(&self, pool: PoolId, seed: usize) -> Vec<usize> {
        let item = &self.context.items[seed];
        let class = &self.context.classes[item.class];
        let Some(rows) = &class.rows[pool] else {
            return Vec::new();
        };
        let table = &self.context.pools[pool];
        let buyable = self.context.buyable[pool].as_ref();
        let suits = |row: usize| {
            let has = &table.type_of(row).allocatable;
            item.requests.iter().zip(has).all(|(ask, has)| ask <= has)
                && buyable.is_none_or(|buyable| buyable.contains(row))
        };
        let shortlist = class.by_value[pool].iter().copied();
        let candidates = some_of_every_size(table, shortlist.filter(|row| suits(*row)));
        if !candidates.is_empty() {
            return candidates;
        }
        let mut all: Vec<usize> = rows.iter().filter(|row| suits(*row)).collect();
        all.sort_by(|a, b| {
            let ratio = |row: usize| {
                let value = table.value_of_row(row);
                value.cost / class.price.of_value(value).max(1e-12)
            };
            ratio(*a).total_cmp(&ratio(*b)).then(a.cmp(b))
        });
        some_of_every_size(table, all.into_iter())
    }
}

fn some_of_every_size(table: &PoolTable, rows: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut per_size = [0_usize; 64];
    let mut candidates = Vec::new();
    for row in rows {
        let taken = &mut per_size[table.value_of_row(row).size];
        if *taken < CANDIDATES_PER_SIZE {
            *taken += 1;
            candidates.push(row);
        }
        if candidates.len() >= CANDIDATES_MAX {
            break;
        }
    }
    candidates
}
