//! The packer that goes for the bill: plans all nodes first, by what their pods are worth, and then opens them.
//!
//! Replaces the first-fit of Karpenter's `scheduling/scheduler.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use super::host_terms::{HostTerm, HostTermKind};
use super::item_columns::ItemColumns;
use super::items::{BatchId, Item, PackItems};
use super::plan::Planner;
use super::plan_context::{PlanContext, seed_order};
use super::planned_node::{ItemCount, PlannedNode};
use crate::interrupt::Interrupt;
use crate::problem::MinValuesPolicy;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::PoolId;
use crate::solve::input::topology::NodePlace;
use crate::solve::input::vocabulary::add_times;
use crate::solve::input::volumes::{AttachedVolumes, attach, attaches};
use crate::solve::place::claim::{OpenClaim, record_domains};
use crate::solve::solver::{PodBatch, Solver};

/// Items planned together. A plan costs items times nodes, so what is greater is dealt into parts that are alike.
const PART_MAX: usize = 768;

/// Deals the items into parts that are planned each for itself.
fn parts(items: &[Item]) -> Vec<Vec<usize>> {
    let count = items.len().div_ceil(PART_MAX).max(1);
    let mut parts = vec![Vec::new(); count];
    for (at, item) in items.iter().enumerate() {
        // Pods that look for each other on one host stay together.
        let looks_for_others = |term: &HostTerm| matches!(term.kind, HostTermKind::Affinity { .. });
        let part = if item.host_terms.iter().any(looks_for_others) {
            0
        } else {
            at % count
        };
        parts[part].push(at);
    }
    parts
}

impl Solver<'_> {
    /// Packs batches into new claims; returns what found no claim.
    pub(crate) fn pack_by_cost(
        &mut self,
        mut batches: Vec<PodBatch>,
        interrupt: &Interrupt,
    ) -> Vec<PodBatch> {
        let items = self.items(&batches);
        let order = seed_order(&items.items);
        let columns = ItemColumns::new(&items, (0..items.items.len()).collect());
        let mut unpacked = columns.unpacked(&items);
        for node in &self.planned(&items, &order, interrupt) {
            if self.open(node, &items, &mut batches) {
                columns.take_picks(&mut unpacked, &node.contents.picks);
            }
        }
        // What was not planned, node by node: limits and reservations may change with every one.
        for item in order.iter().copied() {
            // Pools whose best node could not be opened after all are left to others.
            let mut closed: BTreeSet<PoolId> = BTreeSet::new();
            while unpacked.remaining[item] > 0 && !interrupt.is_tripped() {
                let mut context = self.plan_context(&items, &order);
                for pool in &closed {
                    context.buyable[*pool] = Some(BitSet::empty(self.pools[*pool].rows.len()));
                }
                let next = Planner::new(&context, &columns).next(&mut unpacked, item);
                let Some(node) = next else {
                    break;
                };
                if self.open(&node, &items, &mut batches) {
                    columns.take_picks(&mut unpacked, &node.contents.picks);
                } else if !closed.insert(node.pool) {
                    break;
                }
            }
        }
        batches.retain(|batch| !batch.members.is_empty());
        batches
    }

    /// All nodes at once; none where reservations or limits are too scarce for that.
    fn planned(
        &mut self,
        items: &PackItems,
        order: &Arc<[usize]>,
        interrupt: &Interrupt,
    ) -> Vec<PlannedNode> {
        if self.pools.iter().any(|pool| !pool.slots.is_empty()) {
            return Vec::new();
        }
        let context = self.plan_context(items, order);
        let options = &self.problem.options;
        let plan_part = |part: &Vec<usize>| {
            let columns = ItemColumns::new(items, part.clone());
            let mut unpacked = columns.unpacked(items);
            Planner::new(&context, &columns).best_plan(&mut unpacked, options, interrupt)
        };
        let parts = parts(&items.items);
        // Parts know nothing of each other and are put together in order, so threads only change the time it takes.
        let pool = (options.threads > 1 && parts.len() > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(options.threads));
        let plans: Vec<Vec<PlannedNode>> = match pool.and_then(|pool| pool.build().ok()) {
            Some(pool) => pool.install(|| parts.par_iter().map(plan_part).collect()),
            None => parts.iter().map(plan_part).collect(),
        };
        let plan: Vec<PlannedNode> = plans.into_iter().flatten().collect();
        for pool in PoolId::all(self.pools.len()) {
            let targets = plan.iter().filter(|node| node.pool == pool);
            let targets: Vec<usize> = targets.map(|node| node.row).collect();
            if !self.pools[pool].allows(&targets) {
                return Vec::new();
            }
            self.pools[pool].is_planned = true;
        }
        plan
    }

    fn plan_context<'a>(&'a self, items: &'a PackItems, order: &Arc<[usize]>) -> PlanContext<'a> {
        let is_strict = self.problem.options.min_values_policy == MinValuesPolicy::Strict;
        PlanContext {
            buyable: PoolId::all(self.pools.len())
                .map(|pool| self.buyable(pool))
                .collect(),
            ..PlanContext::new(
                &self.pools,
                &self.vocabulary,
                items,
                Arc::clone(order),
                is_strict,
            )
        }
    }

    /// The rows that limits and reservations still allow; `None` where they rule nothing out.
    fn buyable(&self, pool: PoolId) -> Option<BitSet> {
        let table = &self.pools[pool];
        if !table.do_limits_bind && table.slots.is_empty() {
            return None;
        }
        let mut rows = BitSet::full(table.rows.len());
        self.retain_buyable(pool, &mut rows);
        Some(rows)
    }

    /// Opens the claim of a choice, if what remains still allows it.
    fn open(&mut self, node: &PlannedNode, items: &PackItems, batches: &mut [PodBatch]) -> bool {
        let PlannedNode {
            pool,
            row,
            contents,
            ..
        } = node;
        let pool = *pool;
        if self.pools[pool].is_out_of_nodes() {
            return false;
        }
        let mut set = self.pools[pool].template;
        let mut rows = BitSet::full(self.pools[pool].rows.len());
        let mut requests = self.dims.zero();
        let mut taken: Vec<(BatchId, usize)> = Vec::new();
        for ItemCount { item, count } in &contents.picks {
            let item = &items.items[*item];
            if let Some(of_class) = &items.classes[item.class].rows[pool] {
                rows.intersect(of_class);
            }
            let pods = i64::try_from(*count).unwrap_or(0);
            add_times(&mut requests, &item.requests, pods);
            let mut wanted = *count;
            for batch in &item.batches {
                let from = wanted.min(batches[*batch].members.len());
                if from == 0 {
                    continue;
                }
                let Some(merged) = self.vocabulary.merge(set, batches[*batch].set) else {
                    return false;
                };
                set = merged;
                taken.push((*batch, from));
                wanted -= from;
            }
        }
        self.pools[pool].retain_fitting(&mut rows, &requests);
        self.retain_buyable(pool, &mut rows);
        if !rows.contains(*row) || !self.keeps_min_values_in_limits(pool, *row, &rows) {
            return false;
        }
        let reservation = self.take_slot(pool, *row, &mut rows);
        let relaxed = self.missed_min_values(pool, &rows).is_some();
        self.claims.push(OpenClaim {
            pool,
            rows,
            set,
            requests,
            members: Vec::new(),
            place: NodePlace::default(),
            ports: Vec::new(),
            volumes: AttachedVolumes::new(),
            reservation,
            are_min_values_relaxed: relaxed,
        });
        for (batch, count) in taken {
            self.move_members(&mut batches[batch], count);
        }
        self.retain_attaching();
        self.charge_limits(pool, *row);
        true
    }

    /// Drops rows of the claim opened last that cannot attach all the volumes that came together.
    fn retain_attaching(&mut self) {
        let Some(claim) = self.claims.last_mut().filter(|it| !it.volumes.is_empty()) else {
            return;
        };
        let table = &self.pools[claim.pool];
        let exceeds = |row: &usize| {
            let limits = &table.type_of(*row).instance_type.volume_attachment_limits;
            !attaches(limits, &AttachedVolumes::new(), &claim.volumes)
        };
        let exceeding: Vec<usize> = claim.rows.iter().filter(exceeds).collect();
        for row in exceeding {
            claim.rows.remove(row);
        }
    }

    /// Whether a claim still keeps `minValues` once it is held to what the limits leave.
    fn keeps_min_values_in_limits(&mut self, pool: PoolId, row: usize, rows: &BitSet) -> bool {
        let table = &mut self.pools[pool];
        if !table.do_limits_bind || table.min_values.is_empty() {
            return true;
        }
        let before = table.checkpoint();
        let mut rows = rows.clone();
        table.charge(&mut rows, row);
        table.restore(before);
        self.keeps_min_values(pool, &rows)
    }

    /// Moves pods of a batch to the claim opened last.
    fn move_members(&mut self, batch: &mut PodBatch, count: usize) {
        let members = batch.members.split_off(batch.members.len() - count);
        let group = &self.groups[batch.view.group];
        let membership = &group.views[batch.view.step].membership;
        let Some(claim) = self.claims.last_mut() else {
            return;
        };
        let pods = i64::try_from(count).unwrap_or(0);
        self.topology
            .record_host(membership, &mut claim.place, pods);
        let keys = self.topology.keys_of(membership);
        record_domains(&mut claim.place, &keys, &batch.pins);
        claim.ports.extend(group.host_ports.iter().cloned());
        if let Some(volumes) = &group.volumes {
            attach(&mut claim.volumes, &volumes.attachments);
        }
        self.placed += count;
        claim.members.extend(members);
    }

    /// Takes a reservation slot if the row is reserved; otherwise the claim is kept off reserved rows.
    pub(super) fn take_slot(
        &mut self,
        pool: PoolId,
        row: usize,
        rows: &mut BitSet,
    ) -> Option<String> {
        if self.pools[pool].slots.is_empty() {
            return None;
        }
        let table = &self.pools[pool];
        let reservation = table.reservation_of(row);
        let is_other = |other: &usize| table.reservation_of(*other) != reservation;
        let others: Vec<usize> = rows.iter().filter(is_other).collect();
        let reservation = reservation.map(str::to_owned);
        for other in others {
            rows.remove(other);
        }
        if let Some(id) = &reservation {
            for table in &mut self.pools {
                if let Some(slots) = table.slots.get_mut(id) {
                    *slots = slots.saturating_sub(1);
                }
            }
        }
        reservation
    }

    /// Takes the claim opened last off its pool's limits, at the greatest capacity that it may still become.
    pub(super) fn charge_limits(&mut self, pool: PoolId, row: usize) {
        let Some(claim) = self.claims.last_mut() else {
            return;
        };
        self.pools[pool].charge(&mut claim.rows, row);
    }
}
