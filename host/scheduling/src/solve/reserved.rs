//! Strict reservations: a pod that misses a slot only because others of this pass hold it waits for the next pass,
//! when those slots are launched and the provider knows again what is free.
//!
//! Falling back (what-ifs of disruption) never comes here. Answers to `offeringsToReserve` of Karpenter's
//! `scheduling/nodeclaim.go`.

use std::collections::BTreeMap;

use super::admission::template_requirements;
use super::bitset::BitSet;
use super::vocabulary::SetId;
use super::{Batch, Solver};
use crate::error::PodError;
use crate::instance_type::Offering;
use crate::problem::{Pool, ReservedMode};
use crate::requirements::AllowUndefined;
use crate::solution::Solution;
use crate::taints;

/// What a pool means to a pod that looks for a slot.
enum Prospect {
    /// It cannot serve the pod.
    None,
    /// It serves the pod, with a slot or without asking for one.
    Serves,
    /// It would serve the pod but for a slot that is spoken for.
    Waits,
}

impl Solver<'_> {
    /// Gives up claims without a slot all of whose pods have to wait for one.
    pub(super) fn defer_for_reservations(&mut self, solution: &mut Solution) {
        if !self.may_wait() {
            return;
        }
        let mut group_of = BTreeMap::new();
        for (group, it) in self.groups.iter().enumerate() {
            group_of.extend(it.members.iter().map(|pod| (*pod, group)));
        }
        let mut awaited: BTreeMap<usize, Option<String>> = BTreeMap::new();
        for claim in std::mem::take(&mut self.claims) {
            let mut waiting = Vec::new();
            if claim.reservation.is_none() {
                for pod in &claim.members {
                    let Some(group) = group_of.get(pod).copied() else {
                        continue;
                    };
                    let pool = awaited
                        .entry(group)
                        .or_insert_with(|| self.awaited_reservation(group));
                    waiting.extend(pool.clone().map(|pool| (*pod, pool)));
                }
            }
            // Others may ride along on a claim that somebody opened who may not use reservations.
            if waiting.is_empty() || waiting.len() < claim.members.len() {
                self.claims.push(claim);
                continue;
            }
            for (pod, pool) in waiting {
                let key = self.problem.pods[pod].key.clone();
                let error = PodError::ReservedCapacityPending { pool };
                solution.pod_errors.insert(key, error);
            }
        }
    }

    fn may_wait(&self) -> bool {
        let is_full = |it: &Offering| it.is_reserved() && it.available && !it.is_launchable();
        let has_full = |it: &Pool| {
            let mut offerings = it.instance_types.iter().flat_map(|t| &t.offerings);
            offerings.any(is_full)
        };
        self.problem.options.reserved == ReservedMode::Strict
            && (self.pools.iter().any(|it| !it.slots.is_empty())
                || self.problem.pools.iter().any(has_full))
    }

    /// The pool for whose reservation pods of a group have to wait: the first that would serve them.
    pub(super) fn awaited_reservation(&mut self, group: usize) -> Option<String> {
        if !self.may_wait() {
            return None;
        }
        let mut order: Vec<&Pool> = self.problem.pools.iter().collect();
        order.sort_by_key(|it| {
            let pool = &it.node_pool;
            std::cmp::Reverse((pool.weight(), pool.metadata.name.clone()))
        });
        for view in 0..self.groups[group].views.len() {
            for pool in &order {
                match self.prospect(pool, group, view) {
                    Prospect::None => {}
                    Prospect::Serves => return None,
                    Prospect::Waits => return pool.node_pool.metadata.name.clone(),
                }
            }
        }
        None
    }

    fn prospect(&mut self, pool: &Pool, group: usize, view: usize) -> Prospect {
        let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
        let set = self.view_of(group, view).set;
        let index = self.pools.iter().position(|it| it.name == name);
        let batch = Batch {
            group,
            view,
            set,
            pins: Vec::new(),
            members: Vec::new(),
        };
        let rows = index.and_then(|index| Some((index, self.rows_for(index, &batch)?)));
        match rows {
            Some((index, rows)) => self.prospect_of_rows(index, &rows),
            None if self.has_full_reservation(pool, group, view, set) => Prospect::Waits,
            None => Prospect::None,
        }
    }

    fn prospect_of_rows(&self, pool: usize, rows: &BitSet) -> Prospect {
        let table = &self.pools[pool];
        if table.is_out_of_nodes() {
            return Prospect::None;
        }
        let mut within = rows.clone();
        table.retain_within_limits(&mut within);
        if within.is_empty() {
            return Prospect::None;
        }
        let reserved = || within.iter().filter(|row| table.rows[*row].is_reserved());
        let is_spent = |row: usize| {
            let id = table.offering(&table.rows[row]).reservation_id();
            table.slots.get(id) == Some(&0)
        };
        if reserved().next().is_some() && reserved().all(is_spent) {
            Prospect::Waits
        } else {
            Prospect::Serves
        }
    }

    /// Whether all that the pool could ever offer is a reservation that is full but sound.
    fn has_full_reservation(&self, pool: &Pool, group: usize, view: usize, set: SetId) -> bool {
        let template = template_requirements(pool);
        let asked = self.vocabulary.get(set);
        let tolerations = &self.view_of(group, view).tolerations;
        let pool_taints = &pool.node_pool.spec.template.spec.taints;
        if taints::untolerated(pool_taints, tolerations).is_some()
            || template
                .compatible(asked, AllowUndefined::WellKnown)
                .is_err()
        {
            return false;
        }
        let mut merged = template;
        merged.extend_with(asked);
        let requests = &self.groups[group].requests;
        pool.instance_types.iter().any(|instance_type| {
            let is_full = |it: &Offering| {
                it.is_reserved()
                    && it.available
                    && !it.is_launchable()
                    && merged.meets(&it.requirements)
            };
            let room = self.dims.amounts(&instance_type.allocatable());
            merged.meets(&instance_type.requirements)
                && requests.iter().zip(&room).all(|(ask, has)| ask <= has)
                && instance_type.offerings.iter().any(is_full)
        })
    }
}
