//! A pool's purchasable offerings as rows in order of cost, with sets of rows for every question the packer asks.
//!
//! "Which rows satisfy this requirement set" and "on which rows does this much fit" are each one set, computed once.
//! Answers to Karpenter's `scheduling/nodeclaimtemplate.go` and the filter in `scheduling/nodeclaim.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use apis::labels;
use apis::resources::Resources;
use indexmap::IndexMap;
use k8s_openapi::api::core::v1::Taint;

use super::bitset::BitSet;
use super::vocabulary::{Amounts, Dimensions, SetId, Vocabulary};
use crate::instance_type::{InstanceType, Offering};
use crate::pod::HostPort;
use crate::problem::{Pool, ReservedMode};
use crate::requirements::{
    AllowUndefined, Incompatible, Operator, Requirement, Requirements, is_negative,
};

/// One way to buy a node.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Position in [`PoolTable::types`].
    pub(super) type_index: usize,
    /// Position in the type's offerings.
    pub(super) offering: usize,
    pub(super) cost: f64,
    pub(super) price: f64,
    pub(super) capacity_type: CapacityType,
}

impl Row {
    pub(super) fn is_reserved(&self) -> bool {
        self.capacity_type == CapacityType::Reserved
    }
}

/// How an offering is sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CapacityType {
    OnDemand,
    Spot,
    Reserved,
}

impl CapacityType {
    fn of(offering: &Offering) -> Self {
        match offering.capacity_type() {
            labels::CAPACITY_TYPE_SPOT => Self::Spot,
            labels::CAPACITY_TYPE_RESERVED => Self::Reserved,
            _ => Self::OnDemand,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => labels::CAPACITY_TYPE_ON_DEMAND,
            Self::Spot => labels::CAPACITY_TYPE_SPOT,
            Self::Reserved => labels::CAPACITY_TYPE_RESERVED,
        }
    }
}

/// A type with what is left after daemons.
#[derive(Debug, Clone)]
pub(super) struct TypeRow {
    pub(super) instance_type: Arc<InstanceType>,
    pub(super) allocatable: Amounts,
    pub(super) daemon_overhead: Amounts,
    pub(super) daemon_ports: Arc<[HostPort]>,
}

/// Distinct allocatable amounts of one resource, with the rows that have at least as much.
#[derive(Debug)]
struct FitColumn {
    amounts: Vec<i64>,
    at_least: Vec<BitSet>,
}

/// Rows by what they offer for one label; `None` stands for rows without the label.
type KeyColumn = IndexMap<Option<Requirement>, BitSet>;

/// A pool ready for packing.
#[derive(Debug)]
pub(super) struct PoolTable {
    pub(super) name: String,
    pub(super) taints: Vec<Taint>,
    pub(super) template: SetId,
    pub(super) types: Vec<TypeRow>,
    pub(super) rows: Vec<Row>,
    /// Types of the pool before any filter, for diagnosis.
    pub(super) considered: usize,
    /// Offerings that the policy ruled out.
    pub(super) excluded: usize,
    /// Limits minus what is in use; resources without a limit are absent.
    pub(super) remaining: Option<Resources>,
    /// Whether the limits may be reached in this solve; where they cannot, nobody looks at them.
    pub(super) do_limits_bind: bool,
    /// Reservation slots left, by id.
    pub(super) slots: BTreeMap<String, u32>,
    pub(super) min_values: Vec<(String, u32)>,
    fit: Vec<FitColumn>,
    columns: BTreeMap<String, KeyColumn>,
    by_set: BTreeMap<SetId, Arc<BitSet>>,
}

/// The requirements of nodes of a pool: its own, its labels, and those every node gets.
pub(super) fn template_requirements(pool: &Pool) -> Requirements {
    let template = &pool.node_pool.spec.template;
    let class = &template.spec.node_class_ref;
    let mut requirements =
        Requirements::from_node_selector_requirements(&template.spec.requirements);
    requirements.extend_with(&Requirements::from_labels(&template.metadata.labels));
    let name = pool.node_pool.metadata.name.as_deref().unwrap_or("");
    let class_key = labels::node_class_label(&class.group, &class.kind);
    for (key, value) in [
        (labels::NODEPOOL, name),
        (class_key.as_str(), class.name.as_str()),
        // Simulation only: DaemonSets that select registered or initialized nodes must count.
        (labels::REGISTERED, "true"),
        (labels::INITIALIZED, "true"),
    ] {
        requirements.add(Requirement::new(key, Operator::In, [value]));
    }
    requirements
}

/// The types and offerings of a pool that its own requirements admit, as positions.
pub(super) fn admitted(
    pool: &Pool,
    template: &Requirements,
    reserved: ReservedMode,
) -> Vec<(usize, usize)> {
    let mut rows = Vec::new();
    for (type_index, instance_type) in pool.instance_types.iter().enumerate() {
        if template.intersects(&instance_type.requirements).is_err() {
            continue;
        }
        for (offering_index, offering) in instance_type.offerings.iter().enumerate() {
            let is_off = reserved == ReservedMode::Off && offering.is_reserved();
            if offering.is_launchable()
                && !is_off
                && template.intersects(&offering.requirements).is_ok()
            {
                rows.push((type_index, offering_index));
            }
        }
    }
    rows
}

/// What a table is made of, once the policy has spoken.
pub(super) struct TableParts<'a> {
    pub(super) pool: &'a Pool,
    pub(super) template: SetId,
    /// Type, offering and effective cost of each row.
    pub(super) rows: Vec<(usize, usize, f64)>,
    pub(super) excluded: usize,
    /// Overhead and host ports of the daemons, by position of the type in the pool.
    pub(super) daemons: Vec<(Amounts, Arc<[HostPort]>)>,
}

impl PoolTable {
    pub(super) fn new(parts: TableParts<'_>, dims: &Dimensions, vocabulary: &Vocabulary) -> Self {
        let pool = parts.pool;
        let mut types: Vec<TypeRow> = Vec::new();
        let mut position: BTreeMap<usize, usize> = BTreeMap::new();
        let mut rows = Vec::with_capacity(parts.rows.len());
        for (type_index, offering, cost) in parts.rows {
            let instance_type = &pool.instance_types[type_index];
            let at = *position.entry(type_index).or_insert_with(|| {
                let (overhead, ports) = parts
                    .daemons
                    .get(type_index)
                    .cloned()
                    .unwrap_or_else(|| (dims.zero(), Arc::from([])));
                let mut allocatable = dims.amounts(&instance_type.allocatable());
                super::vocabulary::add_times(&mut allocatable, &overhead, -1);
                types.push(TypeRow {
                    instance_type: Arc::clone(instance_type),
                    allocatable,
                    daemon_overhead: overhead,
                    daemon_ports: ports,
                });
                types.len() - 1
            });
            let sold = &instance_type.offerings[offering];
            rows.push(Row {
                type_index: at,
                offering,
                cost,
                price: sold.price_per_hour,
                capacity_type: CapacityType::of(sold),
            });
        }
        sort_rows(&mut rows, &types);
        let template = vocabulary.get(parts.template);
        let mut table = Self {
            name: pool.node_pool.metadata.name.clone().unwrap_or_default(),
            taints: pool.node_pool.spec.template.spec.taints.clone(),
            template: parts.template,
            considered: pool.instance_types.len(),
            excluded: parts.excluded,
            remaining: remaining(pool),
            do_limits_bind: false,
            slots: BTreeMap::new(),
            min_values: template
                .iter()
                .filter_map(|r| Some((r.key().to_owned(), r.min_values?)))
                .collect(),
            fit: Vec::new(),
            columns: BTreeMap::new(),
            by_set: BTreeMap::new(),
            types,
            rows,
        };
        table.slots = table.reservation_slots();
        table.fit = (0..dims.len())
            .map(|dimension| table.fit_column(dimension))
            .collect();
        table
    }

    fn reservation_slots(&self) -> BTreeMap<String, u32> {
        let mut slots = BTreeMap::new();
        for row in &self.rows {
            if row.is_reserved() {
                let offering = self.offering(row);
                let id = offering.reservation_id().to_owned();
                let left = slots.entry(id).or_insert(offering.reservation_capacity);
                *left = (*left).min(offering.reservation_capacity);
            }
        }
        slots
    }

    fn fit_column(&self, dimension: usize) -> FitColumn {
        let amount = |row: &Row| self.types[row.type_index].allocatable[dimension];
        let mut amounts: Vec<i64> = self.rows.iter().map(amount).collect();
        amounts.sort_unstable();
        amounts.dedup();
        let mut at_least = vec![BitSet::empty(self.rows.len()); amounts.len()];
        for (index, row) in self.rows.iter().enumerate() {
            if let Ok(rank) = amounts.binary_search(&amount(row)) {
                at_least[rank].insert(index);
            }
        }
        for rank in (0..at_least.len().saturating_sub(1)).rev() {
            let (low, high) = at_least.split_at_mut(rank + 1);
            low[rank].unite(&high[0]);
        }
        FitColumn { amounts, at_least }
    }

    pub(super) fn offering(&self, row: &Row) -> &Offering {
        &self.types[row.type_index].instance_type.offerings[row.offering]
    }

    pub(super) fn type_of(&self, row: usize) -> &TypeRow {
        &self.types[self.rows[row].type_index]
    }

    /// Keeps the rows on which the requests fit, daemons aside.
    pub(super) fn retain_fitting(&self, rows: &mut BitSet, requests: &[i64]) {
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

    /// The rows that satisfy a requirement set.
    pub(super) fn rows_of(&mut self, set: SetId, vocabulary: &Vocabulary) -> Arc<BitSet> {
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

    /// The rows that satisfy one requirement; `None` when no row knows the label, which the pool then decides.
    fn rows_satisfying(&mut self, requirement: &Requirement) -> Option<BitSet> {
        let column = self.column(requirement.key());
        if column.keys().all(Option::is_none) {
            return None;
        }
        let mut satisfying = BitSet::empty(self.rows.len());
        for (offered, rows) in &self.columns[requirement.key()] {
            let is_met = match offered {
                Some(offered) => {
                    offered.has_intersection(requirement)
                        || (is_negative(offered.operator()) && is_negative(requirement.operator()))
                }
                None => is_negative(requirement.operator()),
            };
            if is_met {
                satisfying.unite(rows);
            }
        }
        Some(satisfying)
    }

    fn column(&mut self, key: &str) -> &KeyColumn {
        if !self.columns.contains_key(key) {
            let mut column = KeyColumn::new();
            for index in 0..self.rows.len() {
                let offered = self.offered(index, key);
                if let Some(rows) = column.get_mut(&offered) {
                    rows.insert(index);
                } else {
                    let mut rows = BitSet::empty(self.rows.len());
                    rows.insert(index);
                    column.insert(offered, rows);
                }
            }
            self.columns.insert(key.to_owned(), column);
        }
        &self.columns[key]
    }

    fn offered(&self, row: usize, key: &str) -> Option<Requirement> {
        let row = &self.rows[row];
        self.offering(row)
            .requirements
            .find(key)
            .or_else(|| {
                self.types[row.type_index]
                    .instance_type
                    .requirements
                    .find(key)
            })
            .cloned()
    }

    /// Whether every row has at most one value for the label, so that choosing a row settles it.
    pub(super) fn settles(&mut self, key: &str) -> bool {
        let column = self.column(key);
        column.keys().any(Option::is_some)
            && column.keys().all(|offered| {
                offered
                    .as_ref()
                    .is_none_or(|r| !r.is_complement() && r.values().len() <= 1)
            })
    }

    /// The value a row has for a label.
    pub(super) fn value_of(&self, row: usize, key: &str) -> Option<String> {
        let offered = self.offered(row, key)?;
        if offered.is_complement() || offered.values().len() != 1 {
            return None;
        }
        offered.values().next().map(str::to_owned)
    }

    /// The values rows offer for a label, with their rows.
    pub(super) fn domains(&mut self, key: &str, vocabulary: &Vocabulary) -> Vec<(String, BitSet)> {
        let of_template = vocabulary.get(self.template).find(key).cloned();
        let all = BitSet::full(self.rows.len());
        let mut domains: BTreeMap<String, BitSet> = BTreeMap::new();
        for (offered, rows) in self.column(key) {
            match offered {
                Some(offered) if !offered.is_complement() => {
                    for value in offered.values() {
                        domains
                            .entry(value.to_owned())
                            .and_modify(|known| known.unite(rows))
                            .or_insert_with(|| rows.clone());
                    }
                }
                _ => {}
            }
        }
        if let Some(template) = of_template {
            if domains.is_empty() && !template.is_complement() {
                domains.extend(
                    template
                        .values()
                        .map(|value| (value.to_owned(), all.clone())),
                );
            }
            domains.retain(|value, _| template.has(value));
        }
        domains.into_iter().collect()
    }

    /// Whether pods with these requirements may use the pool at all, offerings aside.
    pub(super) fn admits(&self, set: SetId, vocabulary: &Vocabulary) -> Result<(), Incompatible> {
        vocabulary
            .get(self.template)
            .compatible(vocabulary.get(set), AllowUndefined::WellKnown)
    }

    /// Keeps the rows whose type stays within what the limits leave.
    pub(super) fn retain_within_limits(&self, rows: &mut BitSet) {
        let Some(remaining) = &self.remaining else {
            return;
        };
        let within = |t: &TypeRow| {
            remaining.iter().all(|(name, left)| {
                name == labels::RESOURCE_NODES || t.instance_type.capacity.get(name) <= left
            })
        };
        let allowed: Vec<bool> = self.types.iter().map(within).collect();
        for index in 0..self.rows.len() {
            if !allowed[self.rows[index].type_index] {
                rows.remove(index);
            }
        }
    }

    /// Finds out whether that many nodes could reach a limit.
    pub(super) fn judge_limits(&mut self, nodes_max: usize) {
        let Some(remaining) = &self.remaining else {
            return;
        };
        let nodes_max = i64::try_from(nodes_max).unwrap_or(i64::MAX);
        self.do_limits_bind = remaining.iter().any(|(name, left)| {
            let capacities = self.types.iter().map(|t| capacity_for_limit(t, name));
            capacities.max().unwrap_or(0).saturating_mul(nodes_max) > left
        });
    }

    /// Takes a new claim off the limits at the greatest capacity among its rows. Where that would leave less than as
    /// much again, the claim is first held to the size of its target, so that a limit is used rather than hoarded.
    pub(super) fn charge(&mut self, rows: &mut BitSet, target: usize) {
        if !self.do_limits_bind {
            return;
        }
        let Some(remaining) = self.remaining.clone() else {
            return;
        };
        let greatest = |table: &Self, rows: &BitSet, name: &str| {
            rows.iter()
                .map(|row| capacity_for_limit(table.type_of(row), name))
                .max()
                .unwrap_or(0)
        };
        let is_tight = remaining
            .iter()
            .any(|(name, left)| greatest(self, rows, name).saturating_mul(2) > left);
        if is_tight {
            let exceeds = |row: usize| {
                remaining.iter().any(|(name, _)| {
                    capacity_for_limit(self.type_of(row), name)
                        > capacity_for_limit(self.type_of(target), name)
                })
            };
            let too_great: Vec<usize> = rows.iter().filter(|row| exceeds(*row)).collect();
            for row in too_great {
                rows.remove(row);
            }
        }
        let left = remaining
            .iter()
            .map(|(name, left)| (name.to_owned(), left - greatest(self, rows, name)))
            .collect();
        self.remaining = Some(left);
    }

    /// Whether the limit on the number of nodes is used up.
    pub(super) fn is_out_of_nodes(&self) -> bool {
        self.remaining.as_ref().is_some_and(|remaining| {
            remaining.has(labels::RESOURCE_NODES) && remaining.get(labels::RESOURCE_NODES) < 1000
        })
    }
}

fn capacity_for_limit(of_type: &TypeRow, name: &str) -> i64 {
    const ONE_NODE_MILLIS: i64 = 1000;
    if name == labels::RESOURCE_NODES {
        ONE_NODE_MILLIS
    } else {
        of_type.instance_type.capacity.get(name)
    }
}

fn remaining(pool: &Pool) -> Option<Resources> {
    let limits = Resources::from_list(pool.node_pool.spec.limits.as_ref()?);
    let left =
        |(name, limit): (&str, i64)| (name.to_owned(), limit.saturating_sub(pool.in_use.get(name)));
    Some(limits.iter().map(left).collect())
}

/// Cheapest first; ties go to the newer generation, then to the names.
fn sort_rows(rows: &mut [Row], types: &[TypeRow]) {
    let generations: Vec<u32> = types.iter().map(|t| t.instance_type.generation()).collect();
    rows.sort_by(|a, b| {
        a.cost
            .total_cmp(&b.cost)
            .then_with(|| generations[b.type_index].cmp(&generations[a.type_index]))
            .then_with(|| {
                let (a, b) = (&types[a.type_index], &types[b.type_index]);
                a.instance_type.name.cmp(&b.instance_type.name)
            })
            .then_with(|| sold(types, a).cmp(&sold(types, b)))
    });
}

fn sold<'a>(types: &'a [TypeRow], row: &Row) -> [&'a str; 3] {
    let offering = &types[row.type_index].instance_type.offerings[row.offering];
    [
        offering.zone(),
        offering.capacity_type(),
        offering.reservation_id(),
    ]
}
