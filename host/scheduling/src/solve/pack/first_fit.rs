//! Karpenter's own packing: largest pods first, onto the open claim with the fewest pods, else a new claim.
//!
//! Kept for those who want its few large nodes. Answers to `scheduling/scheduler.go`.

use crate::interrupt::Interrupt;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pool_table::{PoolId, PoolTable};
use crate::solve::input::topology::NodePlace;
use crate::solve::input::vocabulary::SetId;
use crate::solve::input::volumes::AttachedVolumes;
use crate::solve::place::claim::OpenClaim;
use crate::solve::place::open_claims::{Assigned, CostRise};
use crate::solve::solver::{Pending, PodBatch, Solver};

impl Solver<'_> {
    /// Packs batches into claims; returns what found none.
    pub(crate) fn pack_first_fit(
        &mut self,
        batches: Vec<PodBatch>,
        interrupt: &Interrupt,
    ) -> Vec<PodBatch> {
        let mut order: Vec<PodBatch> = batches;
        order.sort_by(|a, b| {
            let requests = |batch: &PodBatch| self.groups[batch.view.group].requests[..2].to_vec();
            requests(b)
                .cmp(&requests(a))
                .then(a.view.group.cmp(&b.view.group))
                .then(a.pins.cmp(&b.pins))
        });
        let mut failed = Vec::new();
        for batch in order {
            // Claims count the pods as they take them, so the share assigned before is given back first.
            self.unassign(&batch, batch.members.len());
            let PodBatch {
                view,
                set,
                pins,
                members,
            } = batch;
            let mut pending = Pending { view, members };
            while !pending.members.is_empty() && !interrupt.is_tripped() {
                let assigned = Assigned {
                    set: Some(set),
                    pins: &pins,
                };
                self.place_assigned(&mut pending, assigned, CostRise::Any);
                if pending.members.is_empty() {
                    break;
                }
                let one = PodBatch {
                    view,
                    set,
                    pins: pins.clone(),
                    members: Vec::new(),
                };
                if !self.open_in_turn(&one, &mut pending, assigned) {
                    break;
                }
            }
            if !pending.members.is_empty() {
                let batch = PodBatch {
                    view,
                    set,
                    pins,
                    members: pending.members,
                };
                self.reassign(&batch);
                failed.push(batch);
            }
        }
        failed
    }

    /// Opens a claim in the first pool whose new claim takes a pod: what limits leave may be too little for
    /// `minValues`, which shows only then.
    fn open_in_turn(
        &mut self,
        batch: &PodBatch,
        pending: &mut Pending,
        assigned: Assigned<'_>,
    ) -> bool {
        for pool in PoolId::all(self.pools.len()) {
            let before: Vec<_> = self.pools.iter().map(PoolTable::checkpoint).collect();
            if !self.open_empty(pool, batch) {
                continue;
            }
            self.place_assigned(pending, assigned, CostRise::Any);
            if self.claims.last().is_some_and(|it| !it.members.is_empty()) {
                return true;
            }
            self.claims.pop();
            for (pool, checkpoint) in self.pools.iter_mut().zip(before) {
                pool.restore(checkpoint);
            }
        }
        false
    }

    /// Opens a claim without pods for a batch, where the pool suits.
    fn open_empty(&mut self, pool: PoolId, batch: &PodBatch) -> bool {
        let Some(rows) = self.rows_to_buy(pool, batch.view, batch.set) else {
            return false;
        };
        let template = self.pools[pool].template;
        let set = self.vocabulary.merge(template, batch.set);
        let (Some(row), Some(set)) = (rows.first(), set) else {
            return false;
        };
        if !self.keeps_min_values(pool, &rows) {
            return false;
        }
        self.open_claim(pool, row, set, rows);
        true
    }

    fn open_claim(&mut self, pool: PoolId, row: usize, set: SetId, mut rows: BitSet) {
        let reservation = self.take_slot(pool, row, &mut rows);
        let relaxed = self.missed_min_values(pool, &rows).is_some();
        self.claims.push(OpenClaim {
            pool,
            rows,
            set,
            requests: self.dims.zero(),
            members: Vec::new(),
            place: NodePlace::default(),
            ports: Vec::new(),
            volumes: AttachedVolumes::new(),
            reservation,
            are_min_values_relaxed: relaxed,
        });
        self.charge_limits(pool, row);
    }

    /// Counts the rest of a batch again, as its caller expects of a failed one.
    fn reassign(&mut self, batch: &PodBatch) {
        let membership = self.view_of(batch.view).membership.clone();
        let uncounted = self.uncounted(batch.set, &membership);
        let pods = i64::try_from(batch.members.len()).unwrap_or(0);
        for pin in &batch.pins {
            self.topology
                .record_domain(&membership, *pin, &uncounted, pods);
        }
    }
}
