//! The offerings that a pool may buy, in order of cost, with the rows that requests fit on.
//!
//! Made once for a pool, its types, the policy's scores and the daemons, and shared by all solves that see the same;
//! what is worked out later for labels (`by_label.rs`) depends on nothing but the question. Answers to Karpenter's
//! `scheduling/nodeclaimtemplate.go` and the filter in `scheduling/nodeclaim.go`.

mod by_label;
mod order;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use apis::CapacityType;
use smallvec::SmallVec;

use super::admission::Admission;
use super::bitset::BitSet;
use super::vocabulary::{Amounts, Dimensions, add_times};
use crate::instance_type::{InstanceType, Offering};
use crate::market::Markets;
use crate::pod::HostPort;

use by_label::Answers;
use order::sort_rows;

/// One way to buy a node.
#[derive(Debug, Clone)]
pub(crate) struct BuyableRow {
    /// Position in [`PoolRows::types`].
    pub(crate) type_index: usize,
    /// Position in the type's offerings.
    pub(crate) offering: usize,
    pub(crate) effective_cost_per_hour: f64,
    pub(crate) price_per_hour: f64,
    pub(crate) capacity_type: Option<CapacityType>,
    market: usize,
}

impl BuyableRow {
    pub(crate) fn is_reserved(&self) -> bool {
        self.capacity_type == Some(CapacityType::Reserved)
    }
}

/// The reservation whose slots are counted: reserved offerings that name none share one, so that they are not endless.
fn shared_reservation(reserved: &Offering) -> &str {
    reserved.reservation_id().unwrap_or_default()
}

/// A type with what is left after daemons.
#[derive(Debug, Clone)]
pub(crate) struct TypeRow {
    pub(crate) instance_type: Arc<InstanceType>,
    pub(crate) allocatable: Amounts,
    pub(crate) daemon_overhead: Amounts,
    pub(crate) daemon_ports: Arc<[HostPort]>,
}

/// Resources that a row gives for its cost, as numbers to compare by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowValue {
    pub(crate) cpu: f64,
    pub(crate) memory: f64,
    pub(crate) cost: f64,
    /// Power of two of the CPU.
    pub(crate) size: usize,
}

/// Distinct allocatable amounts of one resource, with the rows that have at least as much.
#[derive(Debug)]
struct FitColumn {
    amounts: Vec<i64>,
    at_least: Vec<BitSet>,
    /// The first row of each of these sets.
    first: Vec<usize>,
}

/// A pool's rows.
#[derive(Debug)]
pub(crate) struct PoolRows {
    pub(crate) types: Vec<TypeRow>,
    /// Their names.
    pub(crate) names: Arc<[String]>,
    pub(crate) rows: Vec<BuyableRow>,
    /// Free slots of reservations, by id.
    pub(super) reservations: BTreeMap<String, u32>,
    fit: Vec<FitColumn>,
    values: Vec<RowValue>,
    markets: Markets,
    answers: Mutex<Answers>,
}

/// What rows are made of, once the policy has spoken.
pub(crate) struct RowParts<'a> {
    pub(crate) admission: &'a Admission,
    /// Effective cost of each admitted row.
    pub(super) costs: &'a [f64],
    /// Positions of admitted rows that are never to be bought.
    pub(super) excluded: &'a BTreeSet<usize>,
    /// Overhead and host ports of the daemons, by position of the type in the pool.
    pub(crate) daemons: &'a [(Amounts, Arc<[HostPort]>)],
}

impl PoolRows {
    pub(crate) fn new(parts: &RowParts<'_>, dims: &Dimensions) -> Self {
        let mut types: Vec<TypeRow> = Vec::new();
        let mut rows = Vec::with_capacity(parts.admission.rows.len());
        let mut last = usize::MAX;
        let priced = parts.admission.rows.iter().zip(parts.costs).enumerate();
        for (at, (admitted, &cost)) in priced {
            if !parts.excluded.is_empty() && parts.excluded.contains(&at) {
                continue;
            }
            let instance_type = &parts.admission.instance_types[admitted.type_index];
            if admitted.type_index != last {
                last = admitted.type_index;
                types.push(type_row(instance_type, parts.daemons.get(last), dims));
            }
            let market = parts.admission.markets.get(admitted.market);
            rows.push(BuyableRow {
                type_index: types.len() - 1,
                offering: admitted.offering,
                effective_cost_per_hour: cost,
                price_per_hour: instance_type.offerings[admitted.offering].price_per_hour,
                capacity_type: market.capacity_type,
                market: admitted.market,
            });
        }
        sort_rows(&mut rows, &types);
        let mut made = Self {
            names: types.iter().map(|t| t.instance_type.name.clone()).collect(),
            types,
            rows,
            reservations: BTreeMap::new(),
            fit: Vec::new(),
            values: Vec::new(),
            markets: parts.admission.markets.clone(),
            answers: Mutex::default(),
        };
        made.value_rows();
        made.reservations = made.reservation_slots();
        made.fit = (0..dims.len())
            .map(|dimension| made.fit_column(dimension))
            .collect();
        made
    }

    fn value_rows(&mut self) {
        let value = |row: &BuyableRow| {
            let has = &self.types[row.type_index].allocatable;
            let cpu = has[0].max(0);
            RowValue {
                cpu: cpu as f64,
                memory: has[1].max(0) as f64,
                cost: row.effective_cost_per_hour.max(1e-9),
                size: cpu.max(1).ilog2() as usize,
            }
        };
        self.values = self.rows.iter().map(value).collect();
    }

    /// Whether some row costs otherwise than its price.
    pub(super) fn has_policy_costs(&self) -> bool {
        self.rows
            .iter()
            .any(|row| (row.effective_cost_per_hour - row.price_per_hour).abs() > 1e-9)
    }

    pub(crate) fn value_of_row(&self, row: usize) -> &RowValue {
        &self.values[row]
    }

    fn reservation_slots(&self) -> BTreeMap<String, u32> {
        let mut slots = BTreeMap::new();
        for row in &self.rows {
            if row.is_reserved() {
                let offering = self.offering(row);
                let id = shared_reservation(offering).to_owned();
                let left = slots.entry(id).or_insert(offering.reservation_capacity);
                *left = (*left).min(offering.reservation_capacity);
            }
        }
        slots
    }

    fn fit_column(&self, dimension: usize) -> FitColumn {
        let amount = |of_type: &TypeRow| of_type.allocatable[dimension];
        let mut amounts: Vec<i64> = self.types.iter().map(amount).collect();
        amounts.sort_unstable();
        amounts.dedup();
        let rank = |of_type: &TypeRow| amounts.binary_search(&amount(of_type)).unwrap_or(0);
        let ranks: Vec<usize> = self.types.iter().map(rank).collect();
        let mut at_least = vec![BitSet::empty(self.rows.len()); amounts.len()];
        for (index, row) in self.rows.iter().enumerate() {
            at_least[ranks[row.type_index]].insert(index);
        }
        for rank in (0..at_least.len().saturating_sub(1)).rev() {
            let (low, high) = at_least.split_at_mut(rank + 1);
            low[rank].unite(&high[0]);
        }
        FitColumn {
            first: at_least
                .iter()
                .map(|set| set.first().unwrap_or(0))
                .collect(),
            amounts,
            at_least,
        }
    }

    /// The cheapest row of all these sets on which the requests fit, looked for from one row on and up to a cost.
    pub(crate) fn first_fitting<'a>(
        &'a self,
        sets: impl Iterator<Item = &'a BitSet>,
        requests: &[i64],
        mut from: usize,
        cost_max: f64,
    ) -> Option<usize> {
        let mut all: SmallVec<[&BitSet; 8]> = sets.collect();
        for (column, request) in self.fit.iter().zip(requests) {
            let rank = column.amounts.partition_point(|amount| amount < request);
            from = from.max(*column.first.get(rank)?);
            if self.rows[from].effective_cost_per_hour > cost_max {
                return None;
            }
            if rank > 0 {
                all.push(&column.at_least[rank]);
            }
        }
        BitSet::first_of_all(&all, from, |row| {
            self.rows[row].effective_cost_per_hour <= cost_max
        })
    }

    /// The greatest capacity of a resource among the types.
    pub(crate) fn greatest(&self, name: &str) -> i64 {
        let capacities = self
            .types
            .iter()
            .map(|t| t.instance_type.capacity.get(name));
        capacities.max().unwrap_or(0)
    }

    pub(crate) fn offering(&self, row: &BuyableRow) -> &Offering {
        &self.types[row.type_index].instance_type.offerings[row.offering]
    }

    /// The reservation of which a node of this row takes a slot; none where the row is not reserved.
    pub(crate) fn reservation_of(&self, row: usize) -> Option<&str> {
        let row = &self.rows[row];
        row.is_reserved()
            .then(|| shared_reservation(self.offering(row)))
    }

    pub(crate) fn type_of(&self, row: usize) -> &TypeRow {
        &self.types[self.rows[row].type_index]
    }

    /// Keeps the rows on which the requests fit, daemons aside.
    pub(crate) fn retain_fitting(&self, rows: &mut BitSet, requests: &[i64]) {
        for (column, request) in self.fit.iter().zip(requests) {
            // A type whose daemons alone overfill a resource has a negative amount there and fits nothing.
            let rank = column.amounts.partition_point(|amount| amount < request);
            if rank == 0 {
                continue;
            }
            match column.at_least.get(rank) {
                Some(set) => rows.intersect(set),
                None => *rows = BitSet::empty(self.rows.len()),
            }
        }
    }
}

fn type_row(
    instance_type: &Arc<InstanceType>,
    daemons: Option<&(Amounts, Arc<[HostPort]>)>,
    dims: &Dimensions,
) -> TypeRow {
    let (daemon_overhead, daemon_ports) = daemons
        .cloned()
        .unwrap_or_else(|| (dims.zero(), Arc::from([])));
    let mut allocatable: Amounts = (0..dims.len())
        .map(|dimension| instance_type.allocatable_of(dims.name(dimension)))
        .collect();
    add_times(&mut allocatable, &daemon_overhead, -1);
    TypeRow {
        instance_type: Arc::clone(instance_type),
        allocatable,
        daemon_overhead,
        daemon_ports,
    }
}
