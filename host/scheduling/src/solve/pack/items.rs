//! Items that the packer packs: pods that are the same to it, whatever group they come from, in classes that may use
//! the same offerings.
//!
//! Pods of many services that differ only in name and chosen domain become one item here, so that planning costs
//! what differs and not what there is.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use apis::CapacityType;
use smallvec::SmallVec;

use super::host_terms::{HostTerm, host_terms};
use crate::pod::HostPort;
use crate::problem::PodVolumes;
use crate::requirements::Requirements;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pod_groups::{most_per_host, shares_one_host};
use crate::solve::input::pool_table::{PoolId, PoolTable};
use crate::solve::input::unit_price::{UnitPrice, unit_price};
use crate::solve::input::vocabulary::{Amounts, EMPTY_SET, SetId, add_times};
use crate::solve::input::volumes::AttachedVolumes;
use crate::solve::solver::{PodBatch, Solver};
use crate::taints;

/// CPU, memory and the number of pods come first; amounts past these make a class special.
pub(super) const COMMON_DIMENSIONS: usize = 3;
/// Among so many Spot types a claim is kept open to several.
const MANY_SPOT_TYPES: usize = 60;
/// How many rows of each size (by powers of two of CPU) a class keeps in mind.
const SHORTLIST_PER_SIZE: usize = 8;

/// A class, by its place in [`PackItems::classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassId(usize);

/// A batch, by its place among those that are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BatchId(usize);

/// Pods that may use the same offerings.
#[derive(Debug)]
pub(super) struct ItemClass {
    /// Rows by requirements, by pool, sizes aside; `None` where the pool is closed to it.
    pub(super) rows: Vec<Option<Arc<BitSet>>>,
    /// The requirements that choosing a row does not determine, by pool.
    pub(super) open: Vec<SetId>,
    pub(super) price: UnitPrice,
    /// The first pool that has a row for its pods, by which they are priced.
    pub(super) first_pool: PoolId,
    /// Rows of each pool worth trying, best value first.
    pub(super) by_value: Vec<Arc<[usize]>>,
    /// Whether each pool sells so many types as Spot that a claim can be left a choice at little cost.
    pub(super) has_many_types: Vec<bool>,
    /// Whether its pods ask for more than CPU, memory and a place.
    pub(super) is_special: bool,
}

/// Pods that are the same to the packer.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) class: ClassId,
    pub(super) requests: Amounts,
    /// Dollars an hour that one pod is worth.
    pub(super) worth: f64,
    pub(super) count: usize,
    pub(super) host_terms: SmallVec<[HostTerm; 2]>,
    pub(super) ports: Vec<HostPort>,
    pub(super) volumes: Option<Arc<PodVolumes>>,
    pub(super) shares_one_host: bool,
    /// Most pods on a node because of host names.
    pub(super) most_per_host: Option<usize>,
    /// How many rows take one pod.
    pub(super) choices: usize,
    /// Where its pods come from.
    pub(super) batches: SmallVec<[BatchId; 1]>,
}

/// All items of a packing, those of a class side by side and the greatest requests first.
#[derive(Debug, Default)]
pub(super) struct PackItems {
    pub(super) classes: Vec<ItemClass>,
    pub(super) items: Vec<Item>,
}

impl Index<ClassId> for [ItemClass] {
    type Output = ItemClass;

    fn index(&self, ClassId(at): ClassId) -> &ItemClass {
        &self[at]
    }
}

impl Index<ClassId> for Vec<ItemClass> {
    type Output = ItemClass;

    fn index(&self, ClassId(at): ClassId) -> &ItemClass {
        &self[at]
    }
}

impl Index<BatchId> for [PodBatch] {
    type Output = PodBatch;

    fn index(&self, BatchId(at): BatchId) -> &PodBatch {
        &self[at]
    }
}

impl IndexMut<BatchId> for [PodBatch] {
    fn index_mut(&mut self, BatchId(at): BatchId) -> &mut PodBatch {
        &mut self[at]
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ClassKey {
    set: SetId,
    tolerated: SmallVec<[bool; 8]>,
    /// Rows by pool, for pods whose host ports or volumes rule some out.
    extras: Option<Vec<Option<BitSet>>>,
    /// The first pool that has a row for the requests, and whether they are special.
    priced_by: (PoolId, bool),
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ItemKey {
    class: ClassId,
    requests: std::cmp::Reverse<Amounts>,
    host_terms: SmallVec<[HostTerm; 2]>,
    shares_one_host: bool,
    ports: Vec<HostPort>,
    /// Pods with volumes stay apart.
    batch: Option<BatchId>,
}

/// Gathers classes and items.
struct ItemsBuilder {
    classes: Vec<ItemClass>,
    sets: Vec<SetId>,
    by_key: BTreeMap<ClassKey, ClassId>,
    items: BTreeMap<ItemKey, SmallVec<[BatchId; 1]>>,
}

impl Solver<'_> {
    /// The items of batches; batches that fit nowhere have none.
    pub(super) fn items(&mut self, batches: &[PodBatch]) -> PackItems {
        let mut builder = ItemsBuilder {
            classes: Vec::new(),
            sets: Vec::new(),
            by_key: BTreeMap::new(),
            items: BTreeMap::new(),
        };
        for (at, batch) in batches.iter().enumerate() {
            let at = BatchId(at);
            let Some(class) = self.class(batch, &mut builder) else {
                continue;
            };
            let view = self.view_of(batch.view);
            let group = &self.groups[batch.view.group];
            let key = ItemKey {
                class,
                requests: std::cmp::Reverse(group.requests.clone()),
                host_terms: host_terms(&self.topology, &view.membership),
                shares_one_host: shares_one_host(&self.topology, &view.membership),
                ports: group.host_ports.clone(),
                batch: group.volumes.is_some().then_some(at),
            };
            builder.items.entry(key).or_default().push(at);
        }
        self.finish(batches, builder)
    }

    fn finish(&mut self, batches: &[PodBatch], builder: ItemsBuilder) -> PackItems {
        let ItemsBuilder {
            mut classes,
            sets,
            items,
            ..
        } = builder;
        let mut items: Vec<Item> = items
            .into_iter()
            .map(|(key, of_item)| self.item(key, of_item, batches))
            .collect();
        // Numbers of topology groups depend on the order of input, so they must not decide.
        items.sort_by(|a, b| {
            let by_size = b.requests.cmp(&a.requests);
            let by_class = a.class.cmp(&b.class);
            by_class.then(by_size).then(a.batches.cmp(&b.batches))
        });
        let mut demand = vec![self.dims.zero(); classes.len()];
        for item in &items {
            let count = i64::try_from(item.count).unwrap_or(i64::MAX);
            add_times(&mut demand[item.class.0], &item.requests, count);
        }
        for (index, class) in classes.iter_mut().enumerate() {
            let pool = class.first_pool;
            let rows = self.pools[pool].rows_of(sets[index], &self.vocabulary);
            class.price = unit_price(&self.pools[pool], &rows, &demand[index], &self.usable);
            class.has_many_types = PoolId::all(self.pools.len())
                .map(|pool| self.has_many_types(pool, class))
                .collect();
            class.by_value = PoolId::all(self.pools.len())
                .map(|pool| self.by_value(pool, class))
                .collect();
        }
        for item in &mut items {
            let class = &classes[item.class];
            item.choices = self.choices(class, &item.requests);
            item.worth = class.price.of(&item.requests);
            if class.is_special {
                let least = self.dominant_worth(class.first_pool, class, &item.requests);
                item.worth = item.worth.max(least);
            }
        }
        PackItems { classes, items }
    }

    fn choices(&self, class: &ItemClass, requests: &[i64]) -> usize {
        let of_pool = |(table, rows): (&PoolTable, &Option<Arc<BitSet>>)| {
            let mut rows = rows.as_ref()?.as_ref().clone();
            table.retain_fitting(&mut rows, requests);
            Some(rows.count())
        };
        self.pools.iter().zip(&class.rows).filter_map(of_pool).sum()
    }

    fn item(&self, key: ItemKey, of_item: SmallVec<[BatchId; 1]>, batches: &[PodBatch]) -> Item {
        let first = &batches[of_item[0]];
        let group = &self.groups[first.view.group];
        let membership = &self.view_of(first.view).membership;
        let most = most_per_host(&self.topology, membership);
        Item {
            class: key.class,
            requests: key.requests.0,
            worth: 0.0,
            count: of_item.iter().map(|b| batches[*b].members.len()).sum(),
            host_terms: key.host_terms,
            ports: key.ports,
            volumes: group.volumes.clone(),
            shares_one_host: key.shares_one_host,
            most_per_host: most.map(|most| usize::try_from(most.max(1)).unwrap_or(1)),
            choices: 0,
            batches: of_item,
        }
    }

    fn class(&mut self, batch: &PodBatch, builder: &mut ItemsBuilder) -> Option<ClassId> {
        let pools = self.pools.len();
        let view = self.view_of(batch.view);
        let tolerated: SmallVec<[bool; 8]> = self
            .pools
            .iter()
            .map(|table| taints::untolerated(&table.taints, &view.tolerations).is_none())
            .collect();
        let group = &self.groups[batch.view.group];
        let needs_extras = group.has_extras();
        let rows: Vec<Option<Arc<BitSet>>> = PoolId::all(pools)
            .zip(&tolerated)
            .map(|(pool, is_tolerated)| {
                if !is_tolerated {
                    return None;
                }
                let rows = self.rows_by_requirements(pool, batch)?;
                if !needs_extras {
                    return Some(rows);
                }
                let mut rows = rows.as_ref().clone();
                self.retain_for_extras(pool, &mut rows, batch.view.group, &AttachedVolumes::new());
                (!rows.is_empty()).then(|| Arc::new(rows))
            })
            .collect();
        let group = &self.groups[batch.view.group];
        let fits = |pool: PoolId| {
            let mut rows = rows[pool].as_ref()?.as_ref().clone();
            self.pools[pool].retain_fitting(&mut rows, &group.requests);
            (!rows.is_empty()).then_some(pool)
        };
        let pool = PoolId::all(pools).find_map(fits)?;
        let is_special = group.requests[COMMON_DIMENSIONS..].iter().any(|a| *a > 0);
        let key = ClassKey {
            set: batch.set,
            tolerated,
            extras: needs_extras.then(|| {
                let owned = |rows: &Option<Arc<BitSet>>| rows.as_deref().cloned();
                rows.iter().map(owned).collect()
            }),
            priced_by: (pool, is_special),
        };
        if let Some(known) = builder.by_key.get(&key) {
            return Some(*known);
        }
        let open = PoolId::all(pools)
            .map(|pool| match &rows[pool] {
                Some(_) => self.open_set(pool, batch.set),
                None => EMPTY_SET,
            })
            .collect();
        let id = ClassId(builder.classes.len());
        builder.by_key.insert(key, id);
        builder.sets.push(batch.set);
        builder.classes.push(ItemClass {
            rows,
            open,
            price: UnitPrice::default(),
            first_pool: pool,
            by_value: Vec::new(),
            has_many_types: Vec::new(),
            is_special,
        });
        Some(id)
    }

    /// The rows of a pool that a batch's requirements admit; `None` when there is none.
    fn rows_by_requirements(&mut self, pool: PoolId, batch: &PodBatch) -> Option<Arc<BitSet>> {
        let table = &mut self.pools[pool];
        table.admits(batch.set, &self.vocabulary).ok()?;
        let rows = table.rows_of(batch.set, &self.vocabulary);
        (!rows.is_empty()).then_some(rows)
    }

    /// The part of a requirement set that the choice of a row leaves open, such as labels of the pool's own.
    fn open_set(&mut self, pool: PoolId, set: SetId) -> SetId {
        let table = &self.pools[pool];
        let open: Requirements = self
            .vocabulary
            .get(set)
            .iter()
            .filter(|r| !table.determines(r.key()))
            .cloned()
            .collect();
        self.vocabulary.set(open)
    }

    fn has_many_types(&self, pool: PoolId, class: &ItemClass) -> bool {
        let table = &self.pools[pool];
        let mut is_known = vec![false; table.types.len()];
        for row in class.rows[pool].iter().flat_map(|rows| rows.iter()) {
            let row = &table.rows[row];
            is_known[row.type_index] |= row.capacity_type == Some(CapacityType::Spot);
        }
        is_known.iter().filter(|known| **known).count() >= MANY_SPOT_TYPES
    }

    /// The least price of the share that a pod takes of a node: what a GPU pod is worth.
    fn dominant_worth(&self, pool: PoolId, class: &ItemClass, requests: &[i64]) -> f64 {
        let table = &self.pools[pool];
        let Some(rows) = &class.rows[pool] else {
            return 0.0;
        };
        let mut rows = rows.as_ref().clone();
        table.retain_fitting(&mut rows, requests);
        rows.iter()
            .map(|row| {
                let has = &table.type_of(row).allocatable;
                let shares = requests.iter().zip(has).filter(|(ask, _)| **ask > 0);
                let greatest = shares
                    .map(|(ask, has)| *ask as f64 / (*has).max(1) as f64)
                    .fold(0.0, f64::max);
                greatest * table.rows[row].effective_cost_per_hour
            })
            .fold(f64::MAX, f64::min)
    }

    /// The rows of a class that give most for the money, some of every size, best value first.
    fn by_value(&self, pool: PoolId, class: &ItemClass) -> Arc<[usize]> {
        let table = &self.pools[pool];
        let Some(rows) = &class.rows[pool] else {
            return Arc::from([]);
        };
        let mut of_size: [SmallVec<[(f64, usize); SHORTLIST_PER_SIZE]>; 64] =
            std::array::from_fn(|_| SmallVec::new());
        for row in rows.iter() {
            let value = self.usable.of(table.value_of_row(row));
            let ratio = value.cost / class.price.of_value(&value).max(1e-12);
            let best = &mut of_size[value.size];
            let at = best.partition_point(|(known, _)| *known <= ratio);
            if at < SHORTLIST_PER_SIZE {
                best.truncate(SHORTLIST_PER_SIZE - 1);
                best.insert(at, (ratio, row));
            }
        }
        let mut ranked: Vec<(f64, usize)> = of_size.into_iter().flatten().collect();
        ranked.sort_unstable_by(|(a, row_a), (b, row_b)| a.total_cmp(b).then(row_a.cmp(row_b)));
        ranked.into_iter().map(|(_, row)| row).collect()
    }
}
