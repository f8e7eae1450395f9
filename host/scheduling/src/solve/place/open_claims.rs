//! Pods on claims that were opened before in this solve.
//!
//! Opens none. Answers to `CanAdd` and `Add` of Karpenter's `scheduling/nodeclaim.go`.

use super::claim::{OpenClaim, record_domains};
use crate::pod::HostPort;
use crate::solve::input::bitset::BitSet;
use crate::solve::input::pod_groups::PodGroupId;
use crate::solve::input::pool_table::PoolId;
use crate::solve::input::topology::{DomainId, KeyId, Pin, TopologyGroupId};
use crate::solve::input::vocabulary::{EMPTY_SET, SetId, add_times, times_fitting};
use crate::solve::input::volumes::attach;
use crate::solve::solver::{Pending, Solver};
use crate::taints;

/// What adding pods would make of a claim.
pub(super) struct Addition {
    rows: BitSet,
    set: SetId,
    /// Keys that the pods' terms look at.
    keys: Vec<KeyId>,
    pins: Vec<Pin>,
}

/// What was assigned to pods before a claim is looked for; by default nothing is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Assigned<'a> {
    /// Requirements, volume alternative and pins merged.
    pub(crate) set: Option<SetId>,
    pub(crate) pins: &'a [Pin],
}

/// By how much a claim's cost may rise for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostRise {
    /// By what the pod is worth: beyond that a node of its own is the better buy.
    WorthMax,
    /// However much, where the pod would find no place otherwise, or nothing is asked of costs.
    Any,
}

impl Solver<'_> {
    /// Puts pods on claims opened before, fewest pods first, as long as a claim's cost rises by no more than that.
    pub(crate) fn place_on_claims(&mut self, pending: &mut Pending, allowed: CostRise) {
        self.place_assigned(pending, Assigned::default(), allowed);
    }

    /// Puts pods whose domains are assigned on claims that were opened there before.
    pub(crate) fn place_assigned(
        &mut self,
        pending: &mut Pending,
        assigned: Assigned<'_>,
        allowed: CostRise,
    ) {
        let mut order: Vec<usize> = (0..self.claims.len()).collect();
        order.sort_by_key(|claim| (self.claims[*claim].members.len(), *claim));
        for index in order {
            while !pending.members.is_empty() {
                let Some((count, addition)) = self.addition(index, pending, assigned, allowed)
                else {
                    break;
                };
                let members: Vec<usize> = pending.members.drain(..count).collect();
                self.add_to_claim(index, pending, addition, members);
            }
            if pending.members.is_empty() {
                return;
            }
        }
    }

    /// How many of the pods the claim can take at once, and what it becomes.
    fn addition(
        &mut self,
        index: usize,
        pending: &Pending,
        assigned: Assigned<'_>,
        allowed: CostRise,
    ) -> Option<(usize, Addition)> {
        let view = self.view_of(pending.view).clone();
        let asked = assigned.set.unwrap_or(view.set);
        let group = &self.groups[pending.view.group];
        let claim = &self.claims[index];
        let table = &self.pools[claim.pool];
        let mut pods_max = self.topology.host_pods_max(&view.membership, &claim.place);
        let conflicts = |port: &HostPort| claim.ports.iter().any(|p| p.conflicts_with(port));
        if pods_max == 0
            || taints::untolerated(&table.taints, &view.tolerations).is_some()
            || table.admits(asked, &self.vocabulary).is_err()
            || group.host_ports.iter().any(conflicts)
        {
            return None;
        }
        let keys = self.topology.keys_of(&view.membership);
        if group.has_extras() || !keys.is_empty() {
            pods_max = 1;
        }
        let (mut set, before) = (claim.set, claim.rows.clone());
        let pins = self.pins_on_claim(index, pending, &keys, assigned.pins)?;
        set = self.vocabulary.merge(set, asked)?;
        if assigned.set.is_none() {
            let alternative = self.alternative_on_claim(index, pending)?;
            set = self.vocabulary.merge(set, alternative)?;
        }
        set = self.pinned(set, &pins)?;
        let claim = &self.claims[index];
        let mut rows = before;
        rows.intersect(&self.pools[claim.pool].rows_of(set, &self.vocabulary));
        let mut requests = claim.requests.clone();
        add_times(&mut requests, &self.groups[pending.view.group].requests, 1);
        let pool = claim.pool;
        self.pools[pool].retain_fitting(&mut rows, &requests);
        self.retain_for_extras(
            pool,
            &mut rows,
            pending.view.group,
            &self.claims[index].volumes,
        );
        let cost_after = self.pools[pool].rows[rows.first()?].effective_cost_per_hour;
        let rise = cost_after - self.cost_of_claim(index);
        if allowed == CostRise::WorthMax {
            let worth = self
                .unit_price(pool, view.set)
                .of(&self.groups[pending.view.group].requests);
            if rise > worth {
                return None;
            }
        }
        if !self.may_narrow(index, &rows) {
            return None;
        }
        let pods_max = pods_max
            .min(pending.members.len())
            .min(self.free_pods_max(pool, &rows, index, pending))
            .max(1);
        let count = self.count_within_min_values(index, pending.view.group, &rows, pods_max);
        let addition = Addition {
            rows,
            set,
            keys,
            pins,
        };
        Some((count, addition))
    }

    /// The most of so many pods that leave as many distinct values as `minValues` ask; one of them is known to.
    fn count_within_min_values(
        &mut self,
        index: usize,
        group: PodGroupId,
        rows: &BitSet,
        pods_max: usize,
    ) -> usize {
        let pool = self.claims[index].pool;
        if self.pools[pool].min_values.is_empty() {
            return pods_max;
        }
        let (mut known, mut beyond) = (1, pods_max + 1);
        while beyond - known > 1 {
            let count = usize::midpoint(known, beyond);
            let mut requests = self.claims[index].requests.clone();
            let pods = i64::try_from(count).unwrap_or(i64::MAX);
            add_times(&mut requests, &self.groups[group].requests, pods);
            let mut left = rows.clone();
            self.pools[pool].retain_fitting(&mut left, &requests);
            if self.may_narrow(index, &left) {
                known = count;
            } else {
                beyond = count;
            }
        }
        known
    }

    /// How many of the pods fit without narrowing the rows further than one of them does.
    fn free_pods_max(&self, pool: PoolId, rows: &BitSet, index: usize, pending: &Pending) -> usize {
        let Some(row) = rows.first() else { return 0 };
        let mut available = self.pools[pool].type_of(row).allocatable.clone();
        add_times(&mut available, &self.claims[index].requests, -1);
        times_fitting(&available, &self.groups[pending.view.group].requests)
    }

    /// The first volume alternative that the claim can meet; the empty set where there are no volumes.
    fn alternative_on_claim(&mut self, index: usize, pending: &Pending) -> Option<SetId> {
        let alternatives = self.groups[pending.view.group].alternatives.clone();
        if alternatives.is_empty() {
            return Some(EMPTY_SET);
        }
        let set = self.claims[index].set;
        let pool = self.claims[index].pool;
        alternatives.into_iter().find(|alternative| {
            self.vocabulary
                .merge(set, *alternative)
                .is_some_and(|merged| {
                    let rows = self.pools[pool].rows_of(merged, &self.vocabulary);
                    rows.intersects(&self.claims[index].rows)
                })
        })
    }

    /// The domain of each key in which the pods would land, if their terms admit it.
    fn pins_on_claim(
        &self,
        index: usize,
        pending: &Pending,
        keys: &[KeyId],
        assigned: &[Pin],
    ) -> Option<Vec<Pin>> {
        let claim = &self.claims[index];
        let membership = &self.view_of(pending.view).membership;
        let strict = self.view_of(pending.view).strict;
        let mut pins = Vec::new();
        for key in keys {
            let of_key = |group: TopologyGroupId| self.topology.group(group).key == *key;
            let wanted = assigned
                .iter()
                .find(|pin| pin.key == *key)
                .map(|pin| pin.domain);
            let there = claim.place.domain(*key);
            if wanted.is_some() && there.is_some() && wanted != there {
                return None;
            }
            let is_unknown = claim.place.unknown.contains(key);
            let domain = there
                .or(wanted)
                .or_else(|| self.best_domain_of(claim, *key))
                .filter(|_| !is_unknown);
            let Some(domain) = domain else {
                // What others' terms say of a label matters only to nodes that may have a value of it which is known:
                // owners of such a term are nowhere else.
                let name = self.topology.label(*key);
                let asked = self.vocabulary.get(claim.set).find(name);
                let mut known = self.topology.domains(*key).iter();
                let is_open =
                    !is_unknown && asked.is_some_and(|asked| known.any(|it| asked.has(it)));
                if is_open || self.topology.owns(membership, *key) {
                    return None;
                }
                continue;
            };
            let is_admitted = membership
                .owned
                .iter()
                .filter(|o| of_key(o.group))
                .all(|o| {
                    self.topology
                        .admits(o, domain, &self.allowed_domains(strict, o.group))
                });
            let mut selecting = membership.selected.iter().filter(|g| of_key(**g));
            let is_deferred = self
                .deferred
                .contains_key(&(pending.view.group, *key, domain));
            if !is_admitted
                || is_deferred
                || selecting.any(|g| self.topology.is_kept_out(*g, domain))
            {
                return None;
            }
            pins.push(Pin { key: *key, domain });
        }
        Some(pins)
    }

    /// The only value that a requirement set leaves for a label.
    fn only_value(&self, set: SetId, name: &str) -> Option<String> {
        let requirement = self.vocabulary.get(set).find(name)?;
        let mut values = requirement.values();
        let value = values.next()?;
        (!requirement.is_complement() && values.next().is_none()).then(|| value.to_owned())
    }

    /// The domain a claim would be in at its best offering.
    fn best_domain_of(&self, claim: &OpenClaim, key: KeyId) -> Option<DomainId> {
        let name = self.topology.label(key);
        let of_row = self.pools[claim.pool].value_of(claim.rows.first()?, name);
        // Labels of a pool's own are given by requirements, not by what is bought.
        let value = of_row.or_else(|| self.only_value(claim.set, name))?;
        self.topology.domain(key, &value)
    }

    fn add_to_claim(
        &mut self,
        index: usize,
        pending: &Pending,
        addition: Addition,
        members: Vec<usize>,
    ) {
        let count = i64::try_from(members.len()).unwrap_or(0);
        let membership = self.view_of(pending.view).membership.clone();
        let uncounted = self.uncounted(addition.set, &membership);
        for pin in &addition.pins {
            self.topology
                .record_domain(&membership, *pin, &uncounted, count);
        }
        let group = &self.groups[pending.view.group];
        let claim = &mut self.claims[index];
        claim.rows = addition.rows;
        claim.set = addition.set;
        add_times(&mut claim.requests, &group.requests, count);
        self.pools[claim.pool].retain_fitting(&mut claim.rows, &claim.requests);
        claim.ports.extend(group.host_ports.iter().cloned());
        if let Some(volumes) = &group.volumes {
            attach(&mut claim.volumes, &volumes.attachments);
        }
        self.topology
            .record_host(&membership, &mut claim.place, count);
        record_domains(&mut claim.place, &addition.keys, &addition.pins);
        self.placed += members.len();
        claim.members.extend(members);
    }

    /// Whether a claim with pods on it may be left with these rows: `minValues` is lowered to open a claim, never to
    /// put one more pod on it.
    fn may_narrow(&self, index: usize, rows: &BitSet) -> bool {
        let claim = &self.claims[index];
        if claim.members.is_empty() {
            return self.keeps_min_values(claim.pool, rows);
        }
        let missed = self.missed_min_values(claim.pool, rows);
        missed.is_none() || missed == self.missed_min_values(claim.pool, &claim.rows)
    }

    /// The cost of the cheapest row that a claim may still become.
    fn cost_of_claim(&self, index: usize) -> f64 {
        let claim = &self.claims[index];
        let rows = &self.pools[claim.pool].rows;
        let first = claim.rows.first();
        first.map_or(f64::INFINITY, |row| rows[row].effective_cost_per_hour)
    }
}
