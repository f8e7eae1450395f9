//! A pool while a solve buys from it: its rows, and what limits and reservations still leave.
//!
//! Which rows there are is decided before; see [`PoolRows`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Index, IndexMut};
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use hooks::columns::saturated;
use k8s_openapi::api::core::v1::Taint;

use super::bitset::BitSet;
use super::pool_rows::{PoolRows, TypeRow};
use super::prepared::PreparedPool;
use super::vocabulary::{SetId, Vocabulary};
use crate::problem::Pool;
use crate::ranking::Exclusions;
use crate::requirements::{AllowUndefined, Incompatible, Requirements};

/// Number of a pool among those that a solve may buy from, and its place in the columns that tell something of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolId(usize);

/// A row of a pool's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowId {
    pub(crate) pool: PoolId,
    pub(crate) row: usize,
}

/// Room that the limits and the reservations of a pool still leave.
#[derive(Debug, Clone)]
pub(crate) struct PoolCheckpoint {
    remaining: Option<Resources>,
    slots: BTreeMap<String, u32>,
}

/// A label with fewer values than the pool's `minValues` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissedMinValues {
    pub(crate) key: String,
    pub(crate) needed: u32,
    pub(crate) have: u32,
}

/// A pool ready for packing.
#[derive(Debug)]
pub(crate) struct PoolTable {
    pub(crate) name: String,
    pub(crate) taints: Vec<Taint>,
    pub(crate) template: SetId,
    /// Types of the pool before any filter, for diagnosis.
    pub(crate) considered: usize,
    /// Limits minus what is in use; resources without a limit are absent.
    pub(crate) remaining: Option<Resources>,
    /// Whether the limits may be reached in this solve; where they cannot, nobody looks at them.
    pub(crate) do_limits_bind: bool,
    /// Whether all claims were planned within the limits, so that each is held to the size it was planned with.
    pub(crate) is_planned: bool,
    /// Reservation slots left, by id.
    pub(crate) slots: BTreeMap<String, u32>,
    pub(crate) min_values: Vec<(String, u32)>,
    /// Offerings that the policy ruled out, for diagnosis.
    pub(crate) exclusions: Arc<Exclusions>,
    shared: Arc<PoolRows>,
    by_set: BTreeMap<SetId, Arc<BitSet>>,
    /// What each type counts against each limit, where limits bind: names need not be looked up for every node.
    counted: Vec<Vec<i64>>,
    /// The rows that count no more against any limit than a type does, by type.
    no_greater: BTreeMap<usize, Arc<BitSet>>,
}

impl PoolId {
    /// Of so many pools.
    pub(crate) fn all(pools: usize) -> impl Iterator<Item = Self> {
        (0..pools).map(Self)
    }
}

impl<T> Index<PoolId> for [T] {
    type Output = T;

    fn index(&self, id: PoolId) -> &T {
        &self[id.0]
    }
}

impl<T> Index<PoolId> for Vec<T> {
    type Output = T;

    fn index(&self, id: PoolId) -> &T {
        &self[id.0]
    }
}

impl<T> IndexMut<PoolId> for Vec<T> {
    fn index_mut(&mut self, id: PoolId) -> &mut T {
        &mut self[id.0]
    }
}

impl Deref for PoolTable {
    type Target = PoolRows;

    fn deref(&self) -> &PoolRows {
        &self.shared
    }
}

impl PoolTable {
    pub(crate) fn new(pool: &Pool, prepared: &PreparedPool, vocabulary: &mut Vocabulary) -> Self {
        let PreparedPool {
            name,
            admission,
            rows: shared,
            exclusions,
            premium_max: _,
            excluded: _,
        } = prepared;
        let min_values = |template: &Requirements| {
            let wanted = template.iter();
            wanted
                .filter_map(|r| Some((r.key().to_owned(), r.min_values?)))
                .collect()
        };
        Self {
            name: name.clone(),
            taints: pool.node_pool.spec.template.spec.taints.clone(),
            template: vocabulary.set(admission.template.clone()),
            considered: pool.instance_types.len(),
            remaining: remaining(pool),
            do_limits_bind: false,
            is_planned: false,
            slots: shared.reservations.clone(),
            min_values: min_values(&admission.template),
            exclusions: Arc::clone(exclusions),
            shared: Arc::clone(shared),
            by_set: BTreeMap::new(),
            counted: Vec::new(),
            no_greater: BTreeMap::new(),
        }
    }

    /// The rows that satisfy a requirement set.
    pub(crate) fn rows_of(&mut self, set: SetId, vocabulary: &Vocabulary) -> Arc<BitSet> {
        if let Some(known) = self.by_set.get(&set) {
            return Arc::clone(known);
        }
        let mut rows = BitSet::full(self.rows.len());
        for requirement in vocabulary.get(set).iter() {
            if let Some(satisfying) = self.rows_satisfying(requirement) {
                rows.intersect(&satisfying);
            }
        }
        let rows = Arc::new(rows);
        self.by_set.insert(set, Arc::clone(&rows));
        rows
    }

    /// The values rows offer for a label, with their rows.
    pub(crate) fn domains(&self, key: &str, vocabulary: &Vocabulary) -> Vec<(String, BitSet)> {
        let of_template = vocabulary.get(self.template).find(key);
        self.shared.domains(key, of_template).into_iter().collect()
    }

    /// Whether pods with these requirements may use the pool at all, offerings aside.
    pub(crate) fn admits(&self, set: SetId, vocabulary: &Vocabulary) -> Result<(), Incompatible> {
        vocabulary
            .get(self.template)
            .compatible(vocabulary.get(set), AllowUndefined::WellKnown)
    }

    /// The first label with too few distinct values for `minValues`.
    pub(crate) fn missed_min_values(
        &self,
        rows: &BitSet,
        vocabulary: &Vocabulary,
    ) -> Option<MissedMinValues> {
        self.min_values.iter().find_map(|(key, needed)| {
            let have = self.distinct_values(key, rows, vocabulary);
            (have < *needed).then(|| MissedMinValues {
                key: key.clone(),
                needed: *needed,
                have,
            })
        })
    }

    /// How many values of a label the rows offer.
    pub(crate) fn distinct_values(&self, key: &str, rows: &BitSet, vocabulary: &Vocabulary) -> u32 {
        saturated(if key == labels::INSTANCE_TYPE {
            let types: BTreeSet<usize> = rows.iter().map(|row| self.rows[row].type_index).collect();
            types.len()
        } else {
            let domains = self.domains(key, vocabulary);
            domains
                .iter()
                .filter(|(_, of_value)| rows.intersects(of_value))
                .count()
        })
    }

    /// Whether the row is of a reservation that has no slot left.
    pub(crate) fn is_spent(&self, row: usize) -> bool {
        let reservation = self.reservation_of(row);
        reservation.is_some_and(|id| self.slots.get(id) == Some(&0))
    }

    /// Keeps the rows whose type stays within what the limits leave.
    pub(crate) fn retain_within_limits(&self, rows: &mut BitSet) {
        let Some(remaining) = &self.remaining else {
            return;
        };
        let within = |of_type: usize| {
            remaining.iter().enumerate().all(|(limit, (name, left))| {
                name == labels::RESOURCE_NODES || self.counts(limit, name, of_type) <= left
            })
        };
        let allowed: Vec<bool> = (0..self.types.len()).map(within).collect();
        if allowed.iter().all(|is_allowed| *is_allowed) {
            return;
        }
        for index in 0..self.rows.len() {
            if !allowed[self.rows[index].type_index] {
                rows.remove(index);
            }
        }
    }

    /// What a node of a type counts against a limit.
    fn counts(&self, limit: usize, name: &str, of_type: usize) -> i64 {
        self.counted.get(limit).map_or_else(
            || capacity_for_limit(&self.types[of_type], name),
            |of_limit| of_limit[of_type],
        )
    }

    /// Finds out whether that many nodes could reach a limit.
    pub(super) fn judge_limits(&mut self, nodes_max: usize) {
        let Some(remaining) = &self.remaining else {
            return;
        };
        let nodes_max = i64::try_from(nodes_max).unwrap_or(i64::MAX);
        self.do_limits_bind = remaining.iter().any(|(name, left)| {
            let greatest = if name == labels::RESOURCE_NODES {
                ONE_NODE_MILLIS
            } else {
                self.greatest(name)
            };
            greatest.saturating_mul(nodes_max) > left
        });
        if self.do_limits_bind {
            let names = remaining.iter().map(|(name, _)| name);
            let of_limit = |name| {
                let types = self.types.iter();
                types.map(|it| capacity_for_limit(it, name)).collect()
            };
            self.counted = names.map(of_limit).collect();
        }
    }

    /// Takes a new claim off the limits at the greatest capacity among its rows. Where that would leave less than as
    /// much again, the claim is first held to the size of its target, so that a limit is used rather than hoarded.
    pub(crate) fn charge(&mut self, rows: &mut BitSet, target: usize) {
        if !self.do_limits_bind {
            return;
        }
        let Some(remaining) = self.remaining.clone() else {
            return;
        };
        let target = self.rows[target].type_index;
        let is_tight = self.is_planned
            || remaining.iter().enumerate().any(|(limit, (name, left))| {
                self.greatest_of(rows, limit, name).saturating_mul(2) > left
            });
        if is_tight {
            rows.intersect(&self.rows_no_greater(target, &remaining));
        }
        let left = remaining.iter().enumerate().map(|(limit, (name, left))| {
            let taken = if is_tight {
                self.counts(limit, name, target)
            } else {
                self.greatest_of(rows, limit, name)
            };
            (name, left.saturating_sub(taken))
        });
        self.remaining = Some(left.collect());
    }

    /// The most that a node of these rows may count against a limit.
    fn greatest_of(&self, rows: &BitSet, limit: usize, name: &str) -> i64 {
        let counts = rows
            .iter()
            .map(|row| self.counts(limit, name, self.rows[row].type_index));
        counts.max().unwrap_or(0)
    }

    fn rows_no_greater(&mut self, target: usize, limits: &Resources) -> Arc<BitSet> {
        if let Some(known) = self.no_greater.get(&target) {
            return Arc::clone(known);
        }
        let is_no_greater = |of_type: usize| {
            let mut limits = limits.iter().map(|(name, _)| name).enumerate();
            limits.all(|(limit, name)| {
                self.counts(limit, name, of_type) <= self.counts(limit, name, target)
            })
        };
        let mut rows = BitSet::full(self.rows.len());
        for row in 0..self.rows.len() {
            if !is_no_greater(self.rows[row].type_index) {
                rows.remove(row);
            }
        }
        let rows = Arc::new(rows);
        self.no_greater.insert(target, Arc::clone(&rows));
        rows
    }

    /// What limits and reservations leave, to come back to when a claim is given up.
    pub(crate) fn checkpoint(&self) -> PoolCheckpoint {
        PoolCheckpoint {
            remaining: self.remaining.clone(),
            slots: self.slots.clone(),
        }
    }

    /// Takes back what was opened since.
    pub(crate) fn restore(&mut self, checkpoint: PoolCheckpoint) {
        let PoolCheckpoint { remaining, slots } = checkpoint;
        (self.remaining, self.slots) = (remaining, slots);
    }

    /// Whether the limits allow nodes of all these rows.
    pub(crate) fn allows(&self, targets: &[usize]) -> bool {
        let Some(remaining) = self.remaining.as_ref().filter(|_| self.do_limits_bind) else {
            return true;
        };
        remaining.iter().all(|(name, left)| {
            let amounts = targets
                .iter()
                .map(|row| capacity_for_limit(self.type_of(*row), name));
            amounts.fold(0_i64, i64::saturating_add) <= left
        })
    }

    /// Whether the limit on the number of nodes is used up.
    pub(crate) fn is_out_of_nodes(&self) -> bool {
        self.remaining.as_ref().is_some_and(|remaining| {
            remaining.has(labels::RESOURCE_NODES) && remaining.count(labels::RESOURCE_NODES) < 1
        })
    }
}

/// What one node counts of the pseudo resource `nodes`.
const ONE_NODE_MILLIS: i64 = 1000;

fn capacity_for_limit(of_type: &TypeRow, name: &str) -> i64 {
    if name == labels::RESOURCE_NODES {
        ONE_NODE_MILLIS
    } else {
        of_type.instance_type.capacity.get(name)
    }
}

fn remaining(pool: &Pool) -> Option<Resources> {
    let limits = Resources::from_list(pool.node_pool.spec.limits.as_ref()?);
    let left = limits
        .iter()
        .map(|(name, limit)| (name, limit.saturating_sub(pool.in_use.get(name))));
    Some(left.collect())
}
