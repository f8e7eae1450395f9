//! The packer that goes for the bill: opens, one by one, the node whose pods are worth most for its price.
//!
//! Hard pods come first, each time as the seed of a node; the candidates for the node are the offerings that are
//! cheap for that seed's class, in all sizes. Replaces the first-fit of Karpenter's `scheduling/scheduler.go`.

use super::bitset::BitSet;
use super::claim::{Claim, settle};
use super::fill::{Filling, Item, Target, fill, host_stakes};
use super::pod_groups::{most_per_host, shares_one_host};
use super::topology::Place;
use super::unit_price::{UnitPrice, unit_price};
use super::vocabulary::{EMPTY_SET, SetId, add_times};
use super::{Batch, Solver};
use crate::interrupt::Interrupt;
use crate::requirements::Requirements;
use crate::taints;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Offerings tried for one node, at most.
const CANDIDATES_MAX: usize = 40;
/// Of these, how many of each size (by powers of two of CPU).
const CANDIDATES_PER_SIZE: usize = 4;

/// How many offerings are kept in mind for a seed's next node.
const SHORTLIST_MAX: usize = 6;
/// How much worse than the first the next node may be before all offerings are tried again.
const SHORTLIST_TOLERANCE: f64 = 1.01;
/// The manner of filling for a first plan.
const DEFAULT_SIZE_WEIGHT: f64 = 0.5;

/// A node worth opening.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) pool: usize,
    pub(super) row: usize,
    pub(super) filling: Filling,
    /// Cost for each dollar of worth.
    pub(super) ratio: f64,
}

/// What seeds a node, and in what manner it is filled.
#[derive(Debug, Clone, Copy)]
struct Seed {
    item: usize,
    size_weight: f64,
}

/// The offerings that did well for a seed, so that its next node need not try all of them again.
#[derive(Debug, Default)]
struct Shortlist {
    pool: usize,
    rows: Vec<usize>,
    ratio: f64,
}

impl Solver<'_> {
    /// Packs batches into new claims; returns what found no claim.
    pub(super) fn pack_by_cost(
        &mut self,
        mut batches: Vec<Batch>,
        interrupt: &Interrupt,
    ) -> Vec<Batch> {
        self.ranked.clear();
        let mut items = self.items(&batches);
        let order = self.seed_order(&batches, &items);
        // Limits and reservations change with every node, so there nothing is planned ahead.
        if self
            .pools
            .iter()
            .all(|p| !p.do_limits_bind && p.slots.is_empty())
        {
            let plan = self.plan(&mut items, &order, DEFAULT_SIZE_WEIGHT, interrupt);
            let plan = self.improve(plan, &mut items, &order, interrupt);
            for choice in &plan {
                for (item, count) in &choice.filling.picks {
                    items[*item].remaining += count;
                }
            }
            for choice in &plan {
                self.open(choice, &mut items, &mut batches);
            }
        }
        for item in order {
            let seed = Seed {
                item,
                size_weight: DEFAULT_SIZE_WEIGHT,
            };
            while items[item].remaining > 0 && !interrupt.is_tripped() {
                let mut shortlist = Shortlist::default();
                let Some(choice) = self.choose(&items, seed, &mut shortlist) else {
                    break;
                };
                if !self.open(&choice, &mut items, &mut batches) {
                    break;
                }
            }
        }
        batches.retain(|batch| !batch.members.is_empty());
        batches
    }

    /// Chooses nodes for all items without opening any; takes the pods off the items.
    pub(super) fn plan(
        &mut self,
        items: &mut [Item],
        order: &[usize],
        size_weight: f64,
        interrupt: &Interrupt,
    ) -> Vec<Choice> {
        let mut plan = Vec::new();
        for item in order {
            let seed = Seed {
                item: *item,
                size_weight,
            };
            let mut shortlist = Shortlist::default();
            while items[*item].remaining > 0 && !interrupt.is_tripped() {
                let Some(choice) = self.choose(items, seed, &mut shortlist) else {
                    break;
                };
                let picks = &choice.filling.picks;
                let repeats = picks
                    .iter()
                    .map(|(item, count)| items[*item].remaining / count);
                let repeats = (repeats.min().unwrap_or(0) / 2).max(1);
                for (item, count) in picks {
                    items[*item].remaining -= count * repeats;
                }
                plan.extend(std::iter::repeat_n(choice, repeats));
            }
        }
        plan
    }

    fn items(&mut self, batches: &[Batch]) -> Vec<Item> {
        let mut items: Vec<Item> = batches.iter().map(|batch| self.item(batch)).collect();
        self.price_items(batches, &mut items);
        items
    }

    fn item(&mut self, batch: &Batch) -> Item {
        let view = self.view_of(batch.group, batch.view).clone();
        let mut rows = Vec::with_capacity(self.pools.len());
        let mut open = Vec::with_capacity(self.pools.len());
        for pool in 0..self.pools.len() {
            let found = self.rows_for(pool, batch);
            open.push(if found.is_some() {
                self.open_set(pool, batch.set)
            } else {
                EMPTY_SET
            });
            rows.push(found);
        }
        let group = &self.groups[batch.group];
        Item {
            requests: group.requests.clone(),
            worth: 0.0,
            price: UnitPrice::default(),
            set: batch.set,
            remaining: batch.members.len(),
            rows,
            open,
            hosts: host_stakes(&self.topology, &view.membership),
            ports: group.host_ports.clone(),
            volumes: group.volumes.clone(),
            shares_one_host: shares_one_host(&self.topology, &view.membership),
        }
    }

    /// The rows of a pool on which one pod of the batch fits; `None` when there is none.
    pub(super) fn rows_for(&mut self, pool: usize, batch: &Batch) -> Option<BitSet> {
        let view = self.view_of(batch.group, batch.view);
        let table = &self.pools[pool];
        if taints::untolerated(&table.taints, &view.tolerations).is_some()
            || table.admits(batch.set, &self.vocabulary).is_err()
        {
            return None;
        }
        let mut rows = self.pools[pool]
            .rows_of(batch.set, &self.vocabulary)
            .as_ref()
            .clone();
        self.pools[pool].retain_fitting(&mut rows, &self.groups[batch.group].requests);
        self.retain_for_extras(pool, &mut rows, batch.group, &BTreeMap::new());
        (!rows.is_empty()).then_some(rows)
    }

    /// The part of a requirement set that the choice of a row leaves open, such as labels of the pool's own.
    fn open_set(&mut self, pool: usize, set: SetId) -> SetId {
        let table = &mut self.pools[pool];
        let open: Requirements = self
            .vocabulary
            .get(set)
            .iter()
            .filter(|r| !table.settles(r.key()))
            .cloned()
            .collect();
        self.vocabulary.set(open)
    }

    /// Worth of one pod of each item: its class's unit prices times its requests.
    fn price_items(&mut self, batches: &[Batch], items: &mut [Item]) {
        let mut demand: BTreeMap<(usize, SetId), super::vocabulary::Amounts> = BTreeMap::new();
        let class = |item: &Item, batch: &Batch| {
            let pool = item.rows.iter().position(Option::is_some)?;
            Some((pool, batch.set))
        };
        for (batch, item) in batches.iter().zip(items.iter()) {
            let Some(class) = class(item, batch) else {
                continue;
            };
            let sum = demand.entry(class).or_insert_with(|| self.dims.zero());
            add_times(
                sum,
                &item.requests,
                i64::try_from(item.remaining).unwrap_or(0),
            );
        }
        let mut prices: BTreeMap<(usize, SetId), UnitPrice> = BTreeMap::new();
        for ((pool, set), demand) in demand {
            let rows = self.pools[pool].rows_of(set, &self.vocabulary);
            prices.insert((pool, set), unit_price(&self.pools[pool], &rows, &demand));
        }
        for (batch, item) in batches.iter().zip(items.iter_mut()) {
            let Some(class) = class(item, batch) else {
                continue;
            };
            item.price = prices[&class];
            item.worth = item.price.of(&item.requests);
            if item.requests[3..].iter().any(|amount| *amount > 0) {
                item.worth = item.worth.max(self.dominant_worth(class.0, item));
            }
        }
    }

    /// The least price of the share that a pod takes of a node: what a GPU pod is worth.
    fn dominant_worth(&self, pool: usize, item: &Item) -> f64 {
        let table = &self.pools[pool];
        let rows = item.rows[pool].iter().flat_map(BitSet::iter);
        rows.map(|row| {
            let has = &table.type_of(row).allocatable;
            let shares = item.requests.iter().zip(has).filter(|(ask, _)| **ask > 0);
            let greatest = shares
                .map(|(ask, has)| *ask as f64 / (*has).max(1) as f64)
                .fold(0.0, f64::max);
            greatest * table.rows[row].cost
        })
        .fold(f64::MAX, f64::min)
    }

    /// Hardest first: worth per unit of the class, then how many nodes it needs, then size.
    fn seed_order(&self, batches: &[Batch], items: &[Item]) -> Vec<usize> {
        let key = |index: usize| {
            let (batch, item) = (&batches[index], &items[index]);
            let choices: usize = item.rows.iter().flatten().map(BitSet::count).sum();
            let membership = &self.view_of(batch.group, batch.view).membership;
            let nodes = most_per_host(&self.topology, membership).map_or(0, |most| {
                item.remaining / usize::try_from(most.max(1)).unwrap_or(1)
            });
            (
                !item.shares_one_host,
                choices / 64,
                std::cmp::Reverse(nodes),
            )
        };
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by(|a, b| {
            key(*a)
                .cmp(&key(*b))
                .then_with(|| items[*b].worth.total_cmp(&items[*a].worth))
                .then(a.cmp(b))
        });
        order
    }

    /// The best node for a seed, in the first pool that has one.
    fn choose(&mut self, items: &[Item], seed: Seed, shortlist: &mut Shortlist) -> Option<Choice> {
        if !shortlist.rows.is_empty() {
            let rows = shortlist.rows.clone();
            let tried = self.best_of(items, seed, (shortlist.pool, &rows));
            if let Some((choice, _)) = tried
                && choice.ratio <= shortlist.ratio * SHORTLIST_TOLERANCE
            {
                return Some(choice);
            }
        }
        for pool in 0..self.pools.len() {
            let Some(rows) = &items[seed.item].rows[pool] else {
                continue;
            };
            if self.pools[pool].is_out_of_nodes() {
                continue;
            }
            let mut rows = rows.clone();
            self.retain_buyable(pool, &mut rows);
            let candidates = self.candidates(pool, &rows, &items[seed.item]);
            if let Some((choice, ratios)) = self.best_of(items, seed, (pool, &candidates)) {
                let rows = ratios
                    .into_iter()
                    .take(SHORTLIST_MAX)
                    .map(|(_, row)| row)
                    .collect();
                *shortlist = Shortlist {
                    pool,
                    rows,
                    ratio: choice.ratio,
                };
                return Some(choice);
            }
        }
        None
    }

    /// The best filling among these rows, and the ratios of all that were tried, best first.
    fn best_of(
        &mut self,
        items: &[Item],
        seed: Seed,
        (pool, rows): (usize, &[usize]),
    ) -> Option<(Choice, Vec<(f64, usize)>)> {
        let bound = Self::class_prices(pool, items, seed.item);
        let mut best: Option<Choice> = None;
        let mut ratios = Vec::new();
        for row in rows {
            if let Some(known) = &best
                && self.least_ratio(pool, *row, &bound) >= known.ratio
            {
                continue;
            }
            let Some(choice) = self.evaluate(items, seed, pool, *row) else {
                continue;
            };
            ratios.push((choice.ratio, *row));
            if best.as_ref().is_none_or(|known| choice.ratio < known.ratio) {
                best = Some(choice);
            }
        }
        ratios.sort_by(|(a, row_a), (b, row_b)| a.total_cmp(b).then(row_a.cmp(row_b)));
        Some((best?, ratios))
    }

    /// The unit prices of the classes that may share a node with the seed; none where they do not tell what pods are
    /// worth.
    fn class_prices(pool: usize, items: &[Item], seed: usize) -> Vec<UnitPrice> {
        if items[seed].requests[3..].iter().any(|amount| *amount > 0) {
            return Vec::new();
        }
        let mut prices: BTreeMap<SetId, UnitPrice> = BTreeMap::new();
        for item in items
            .iter()
            .filter(|item| item.remaining > 0 && item.rows[pool].is_some())
        {
            prices.entry(item.set).or_insert(item.price);
        }
        prices.into_values().collect()
    }

    /// No filling of the row can do better than this.
    fn least_ratio(&self, pool: usize, row: usize, prices: &[UnitPrice]) -> f64 {
        let table = &self.pools[pool];
        let has = &table.type_of(row).allocatable;
        let greatest = prices.iter().map(|price| price.of(has)).fold(0.0, f64::max);
        if greatest > 0.0 {
            table.rows[row].cost / greatest
        } else {
            0.0
        }
    }

    /// Drops rows that limits or used-up reservations rule out.
    pub(super) fn retain_buyable(&self, pool: usize, rows: &mut BitSet) {
        let table = &self.pools[pool];
        if table.do_limits_bind {
            table.retain_within_limits(rows);
        }
        if !table.slots.is_empty() {
            let spent: Vec<usize> = rows
                .iter()
                .filter(|row| {
                    let offering = table.offering(&table.rows[*row]);
                    table.rows[*row].is_reserved()
                        && table.slots.get(offering.reservation_id()) == Some(&0)
                })
                .collect();
            for row in spent {
                rows.remove(row);
            }
        }
    }

    fn evaluate(&mut self, items: &[Item], seed: Seed, pool: usize, row: usize) -> Option<Choice> {
        const SHARES: [f64; 5] = [1.0, 0.75, 0.5, 0.25, 0.1];
        let cost = self.pools[pool].rows[row].cost;
        for share in SHARES {
            let target = Target {
                pool,
                row,
                seed: seed.item,
                share,
                size_weight: seed.size_weight,
            };
            let vocabulary = &mut self.vocabulary;
            let mut merge = |a, b| vocabulary.merge(a, b);
            let filling = fill(&self.pools[pool], items, target, &mut merge)?;
            if !self.pools[pool].min_values.is_empty() {
                let rows = self.rows_left(pool, items, &filling);
                if !self.keeps_min_values(pool, &rows) {
                    continue;
                }
            }
            let ratio = cost.max(1e-9) / filling.worth.max(1e-12);
            return Some(Choice {
                pool,
                row,
                filling,
                ratio,
            });
        }
        None
    }

    /// The rows on which a whole filling fits.
    pub(super) fn rows_left(&self, pool: usize, items: &[Item], filling: &Filling) -> BitSet {
        let mut rows = BitSet::full(self.pools[pool].rows.len());
        let mut requests = self.dims.zero();
        for (index, count) in &filling.picks {
            let item = &items[*index];
            if let Some(of_item) = &item.rows[pool] {
                rows.intersect(of_item);
            }
            add_times(
                &mut requests,
                &item.requests,
                i64::try_from(*count).unwrap_or(0),
            );
        }
        self.pools[pool].retain_fitting(&mut rows, &requests);
        rows
    }

    /// The rows worth trying: those that give the seed's class most for the money, some of every size.
    fn candidates(&mut self, pool: usize, rows: &BitSet, seed: &Item) -> Vec<usize> {
        let ranked = self.ranked_rows(pool, seed);
        let table = &self.pools[pool];
        let mut per_size = [0_usize; 64];
        let mut candidates = Vec::new();
        for row in ranked.iter().filter(|row| rows.contains(**row)) {
            let cpu = u64::try_from(table.type_of(*row).allocatable[0].max(1)).unwrap_or(1);
            let taken = &mut per_size[cpu.ilog2() as usize];
            if *taken < CANDIDATES_PER_SIZE {
                *taken += 1;
                candidates.push(*row);
            }
            if candidates.len() >= CANDIDATES_MAX {
                break;
            }
        }
        candidates
    }

    /// All rows of the seed's class, best value first.
    fn ranked_rows(&mut self, pool: usize, seed: &Item) -> Arc<[usize]> {
        if let Some(known) = self.ranked.get(&(pool, seed.set)) {
            return Arc::clone(known);
        }
        let rows = self.pools[pool].rows_of(seed.set, &self.vocabulary);
        let price = seed.price;
        let table = &self.pools[pool];
        let mut ranked: Vec<(f64, usize)> = rows
            .iter()
            .map(|row| {
                let worth = price.of(&table.type_of(row).allocatable);
                (table.rows[row].cost.max(1e-9) / worth.max(1e-12), row)
            })
            .collect();
        ranked.sort_by(|(a, row_a), (b, row_b)| a.total_cmp(b).then(row_a.cmp(row_b)));
        let ranked: Arc<[usize]> = ranked.into_iter().map(|(_, row)| row).collect();
        self.ranked.insert((pool, seed.set), Arc::clone(&ranked));
        ranked
    }

    /// Opens the claim of a choice, if what remains still allows it.
    fn open(&mut self, choice: &Choice, items: &mut [Item], batches: &mut [Batch]) -> bool {
        let Choice {
            pool, row, filling, ..
        } = choice;
        let pool = *pool;
        if self.pools[pool].is_out_of_nodes() {
            return false;
        }
        let mut set = self.pools[pool].template;
        let mut rows = BitSet::full(self.pools[pool].rows.len());
        let mut requests = self.dims.zero();
        for (index, count) in &filling.picks {
            let Some(merged) = self.vocabulary.merge(set, batches[*index].set) else {
                return false;
            };
            set = merged;
            if let Some(of_item) = &items[*index].rows[pool] {
                rows.intersect(of_item);
            }
            add_times(
                &mut requests,
                &items[*index].requests,
                i64::try_from(*count).unwrap_or(0),
            );
        }
        self.pools[pool].retain_fitting(&mut rows, &requests);
        self.retain_buyable(pool, &mut rows);
        if !rows.contains(*row) {
            return false;
        }
        let reservation = self.take_slot(pool, *row, &mut rows);
        let relaxed = self.missed_min_values(pool, &rows).is_some();
        self.claims.push(Claim {
            pool,
            rows,
            set,
            requests,
            members: Vec::new(),
            place: Place::default(),
            ports: Vec::new(),
            volumes: BTreeMap::new(),
            reservation,
            are_min_values_relaxed: relaxed,
        });
        for (index, count) in &filling.picks {
            self.move_members(*index, *count, items, batches);
        }
        self.charge_limits(pool, *row);
        true
    }

    /// Moves pods of a batch to the claim opened last.
    fn move_members(
        &mut self,
        index: usize,
        count: usize,
        items: &mut [Item],
        batches: &mut [Batch],
    ) {
        let batch = &mut batches[index];
        let count = count.min(batch.members.len());
        items[index].remaining -= count;
        let members: Vec<usize> = batch.members.drain(..count).collect();
        let membership = self.groups[batch.group].views[batch.view]
            .membership
            .clone();
        let group = &self.groups[batch.group];
        let Some(claim) = self.claims.last_mut() else {
            return;
        };
        let pods = i64::try_from(count).unwrap_or(0);
        self.topology
            .record_host(&membership, &mut claim.place, pods);
        for (key, domain) in &batch.pins {
            settle(&mut claim.place, *key, *domain);
        }
        claim.ports.extend(group.host_ports.iter().cloned());
        for (driver, volumes) in group.volumes.iter().flat_map(|v| &v.attachments) {
            claim
                .volumes
                .entry(driver.clone())
                .or_default()
                .extend(volumes.iter().cloned());
        }
        self.placed += count;
        claim.members.extend(members);
    }

    /// Takes a reservation slot if the row is reserved; otherwise the claim is kept off reserved rows.
    pub(super) fn take_slot(
        &mut self,
        pool: usize,
        row: usize,
        rows: &mut BitSet,
    ) -> Option<String> {
        if self.pools[pool].slots.is_empty() {
            return None;
        }
        let table = &self.pools[pool];
        let target = table.offering(&table.rows[row]);
        let reservation = target
            .is_reserved()
            .then(|| target.reservation_id().to_owned());
        let others: Vec<usize> = rows
            .iter()
            .filter(|row| {
                let offering = table.offering(&table.rows[*row]);
                match &reservation {
                    Some(id) => offering.reservation_id() != id,
                    None => offering.is_reserved(),
                }
            })
            .collect();
        for other in others {
            rows.remove(other);
        }
        if let Some(id) = &reservation {
            for table in &mut self.pools {
                if let Some(left) = table.slots.get_mut(id) {
                    *left = left.saturating_sub(1);
                }
            }
        }
        reservation
    }

    /// Takes the claim opened last off its pool's limits, at the greatest capacity that it may still become.
    pub(super) fn charge_limits(&mut self, pool: usize, row: usize) {
        let Some(claim) = self.claims.last_mut() else {
            return;
        };
        self.pools[pool].charge(&mut claim.rows, row);
    }
}
