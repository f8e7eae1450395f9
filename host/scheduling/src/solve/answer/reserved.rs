//! Strict reservations: a pod that misses a slot only because others of this pass hold it waits for the next pass,
//! when those slots are launched and the provider knows again what is free.
//!
//! Falling back (simulations of disruption) never comes here. Answers to `offeringsToReserve` of Karpenter's
//! `scheduling/nodeclaim.go`.

use std::collections::BTreeMap;

use crate::error::PodError;
use crate::instance_type::Offering;
use crate::problem::{Pool, ReservedMode, by_weight};
use crate::requirements::AllowUndefined;
use crate::solution::Solution;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pod_groups::PodGroupId;
use crate::solve::input::pool_table::PoolId;
use crate::solve::input::topology::{DomainId, HOSTNAME_KEY, NodePlace, Pin};
use crate::solve::input::vocabulary::SetId;
use crate::solve::solver::{DeferredDomains, Solver, ViewId};
use crate::taints;
use crate::template::requirements_of_template;

/// Prospect of a pool to a pod that looks for a slot.
enum Prospect {
    /// It cannot serve the pod.
    None,
    /// It serves the pod, with a slot or without asking for one.
    Serves,
    /// It would serve the pod but for a slot that is spoken for.
    Waits,
}

impl Solver<'_> {
    /// Gives up claims without a slot all of whose pods have to wait for one; returns the domains they were sent to.
    pub(crate) fn defer_for_reservations(&mut self, solution: &mut Solution) -> DeferredDomains {
        let mut domains = DeferredDomains::new();
        if !self.may_wait() {
            return domains;
        }
        let mut group_of = BTreeMap::new();
        for group in PodGroupId::all(self.groups.len()) {
            let members = self.groups[group].members.iter();
            group_of.extend(members.map(|pod| (*pod, group)));
        }
        let mut awaited: BTreeMap<(PodGroupId, Vec<Pin>), Option<String>> = BTreeMap::new();
        for claim in std::mem::take(&mut self.claims) {
            let mut waiting = Vec::new();
            if claim.reservation.is_none() {
                for pod in &claim.members {
                    let Some(group) = group_of.get(pod).copied() else {
                        continue;
                    };
                    let pins = self.own_pins(group, &claim.place);
                    let pool = awaited
                        .entry((group, pins.clone()))
                        .or_insert_with(|| self.awaited_reservation(group, &pins));
                    waiting.extend(pool.clone().map(|pool| (*pod, (group, pins), pool)));
                }
            }
            // Others may ride along on a claim that somebody opened who may not use reservations.
            if waiting.is_empty() || waiting.len() < claim.members.len() {
                self.claims.push(claim);
                continue;
            }
            for (pod, (group, pins), pool) in waiting {
                for Pin { key, domain } in pins {
                    domains.insert((group, key, domain), pool.clone());
                }
                let key = self.problem.pods[pod].key.clone();
                let error = PodError::ReservedCapacityPending { pool };
                solution.pod_errors.insert(key, error);
            }
        }
        domains
    }

    fn may_wait(&self) -> bool {
        let has_full = |it: &Pool| {
            let mut offerings = it.instance_types.iter().flat_map(|t| &t.offerings);
            offerings.any(Offering::is_full)
        };
        self.problem.options.reserved == ReservedMode::Strict
            && (self.pools.iter().any(|it| !it.slots.is_empty())
                || self.problem.pools.iter().any(has_full))
    }

    /// The domains of a place that pods of a group were sent to for the sake of their topology.
    fn own_pins(&self, group: PodGroupId, place: &NodePlace) -> Vec<Pin> {
        let keys = self
            .topology
            .keys_of(&self.view_of(ViewId::strictest(group)).membership);
        let pins = keys.into_iter().filter_map(|key| {
            let domain = place.domain(key)?;
            Some(Pin { key, domain })
        });
        pins.collect()
    }

    /// The pool for whose reservation pods of a group have to wait in these domains: the first that would serve them.
    pub(crate) fn awaited_reservation(
        &mut self,
        group: PodGroupId,
        pins: &[Pin],
    ) -> Option<String> {
        if !self.may_wait() {
            return None;
        }
        let first = |group: PodGroupId| (group, HOSTNAME_KEY, DomainId::FIRST);
        let mut of_group = self.deferred.range(first(group)..first(group.next()));
        if let Some((_, pool)) = of_group.next().filter(|_| pins.is_empty()) {
            return Some(pool.clone());
        }
        let mut order: Vec<&Pool> = self.problem.pools.iter().collect();
        order.sort_by(|a, b| by_weight(&a.node_pool, &b.node_pool));
        for step in 0..self.groups[group].views.len() {
            for pool in &order {
                match self.prospect(pool, ViewId { group, step }, pins) {
                    Prospect::None => {}
                    Prospect::Serves => return None,
                    Prospect::Waits => return pool.node_pool.metadata.name.clone(),
                }
            }
        }
        None
    }

    fn prospect(&mut self, pool: &Pool, of_view: ViewId, pins: &[Pin]) -> Prospect {
        let name = pool.node_pool.metadata.name.as_deref().unwrap_or_default();
        let Some(set) = self.pinned(self.view_of(of_view).set, pins) else {
            return Prospect::None;
        };
        let id = PoolId::all(self.pools.len()).find(|id| self.pools[*id].name == name);
        let rows = id.and_then(|id| Some((id, self.rows_for(id, of_view, set)?)));
        match rows {
            Some((id, rows)) => self.prospect_of_rows(id, &rows),
            None if self.has_full_reservation(pool, of_view, set) => Prospect::Waits,
            None => Prospect::None,
        }
    }

    fn prospect_of_rows(&self, pool: PoolId, rows: &BitSet) -> Prospect {
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
        if reserved().next().is_some() && reserved().all(|row| table.is_spent(row)) {
            Prospect::Waits
        } else {
            Prospect::Serves
        }
    }

    /// Whether all that the pool could ever offer is a reservation that is full but sound.
    fn has_full_reservation(&self, pool: &Pool, of_view: ViewId, set: SetId) -> bool {
        let template = requirements_of_template(&pool.node_pool);
        let asked = self.vocabulary.get(set);
        let tolerations = &self.view_of(of_view).tolerations;
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
        let requests = &self.groups[of_view.group].requests;
        pool.instance_types.iter().any(|instance_type| {
            let is_full = |it: &Offering| it.is_full() && merged.meets(&it.requirements);
            let available = self.dims.amounts(&instance_type.allocatable());
            merged.meets(&instance_type.requirements)
                && requests.iter().zip(&available).all(|(ask, has)| ask <= has)
                && instance_type.offerings.iter().any(is_full)
        })
    }
}
