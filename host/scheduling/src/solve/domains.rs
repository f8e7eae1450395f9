//! Which zone (or other domain) each pod goes to, settled before any node is opened.
//!
//! Opening nodes one by one would let a spread take only `maxSkew` pods of a service on each; deciding the shares
//! first lets every node be filled with all of them. Answers to `getNextDomain` of Karpenter's `topologygroup.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pod_groups::shares_one_host;
use super::topology::{DomainId, GroupId, HOSTNAME_KEY, KeyId, Membership, Owned, Rule};
use super::vocabulary::{Amounts, SetId};
use super::{Batch, Pending, Solver};
use crate::requirements::Operator;
use crate::taints;

/// What decides which domains have rows: requirements, key, requests, and the pools whose taints are tolerated.
pub(super) type Asked = (SetId, KeyId, Amounts, Vec<bool>);

/// Domains that have rows for a pod, with a price to break ties.
pub(super) type Feasible = Arc<[(DomainId, f64)]>;

/// What settles the domain of one key for the pods of a group.
struct Stakes {
    group: usize,
    key: KeyId,
    feasible: Feasible,
    /// Terms of the pods themselves, with the domains that strict requirements allow.
    owned: Vec<(Owned, Arc<[bool]>)>,
    /// Groups that count the pods.
    selecting: Vec<GroupId>,
}

impl Solver<'_> {
    /// Splits pending pods into batches of settled domains; returns those for which no domain is left.
    pub(super) fn assign_domains(&mut self, pending: Vec<Pending>) -> (Vec<Batch>, Vec<Pending>) {
        let mut batches = Vec::new();
        let mut left = Vec::new();
        let mut staked = Vec::new();
        for pending in pending {
            let membership = &self.view_of(pending.group, pending.view).membership;
            if self.topology.keys_of(membership).is_empty() {
                let Some(set) = self.bases(&pending).first().copied() else {
                    left.push(pending);
                    continue;
                };
                batches.push(Batch {
                    group: pending.group,
                    view: pending.view,
                    set,
                    pins: Vec::new(),
                    members: pending.members,
                });
            } else {
                staked.push(pending);
            }
        }
        // Those whom others look at go first, then affinity, then spreads that must end up level.
        staked.sort_by_key(|p| self.rank_of_stake(p));
        let mut is_retry = false;
        while !staked.is_empty() {
            let mut failed = Vec::new();
            let mut has_moved = false;
            for pending in staked {
                let (made, rest) = self.assign(&pending);
                has_moved |= !made.is_empty();
                batches.extend(made);
                failed.extend(rest);
            }
            staked = Vec::new();
            if has_moved && !is_retry {
                is_retry = true;
                staked = failed;
            } else {
                left.extend(failed);
            }
        }
        (batches, left)
    }

    /// The view's requirements with each volume alternative that agrees with them, those first-hand that some pool can
    /// serve. None when every alternative contradicts the pod.
    fn bases(&mut self, pending: &Pending) -> Vec<SetId> {
        let view = self.view_of(pending.group, pending.view).set;
        let bases = self.with_alternatives(pending.group, view);
        if bases.len() < 2 {
            return bases;
        }
        let is_served = |set: &SetId| {
            let batch = Batch {
                group: pending.group,
                view: pending.view,
                set: *set,
                pins: Vec::new(),
                members: Vec::new(),
            };
            (0..self.pools.len()).any(|pool| self.rows_for(pool, &batch).is_some())
        };
        let served: Vec<SetId> = bases.iter().copied().filter(is_served).collect();
        if served.is_empty() { bases } else { served }
    }

    /// The requirements with each alternative of the group that agrees with them; as they are where there is none.
    pub(super) fn with_alternatives(&mut self, group: usize, set: SetId) -> Vec<SetId> {
        let alternatives = self.groups[group].alternatives.clone();
        if alternatives.is_empty() {
            return vec![set];
        }
        let merged = alternatives.into_iter();
        merged
            .filter_map(|it| self.vocabulary.merge(set, it))
            .collect()
    }

    fn rank_of_stake(&self, pending: &Pending) -> u8 {
        let membership = &self.view_of(pending.group, pending.view).membership;
        let owns = |wanted: fn(&Rule) -> bool| {
            membership.owned.iter().any(|o| {
                let group = self.topology.group(o.group);
                group.key != HOSTNAME_KEY && wanted(&group.rule)
            })
        };
        if owns(|rule| matches!(rule, Rule::Affinity)) {
            1
        } else if shares_one_host(&self.topology, membership) {
            // The first of them opens the host that all others must find, so they come before any friends.
            0
        } else if owns(|rule| matches!(rule, Rule::Spread { .. } | Rule::AntiAffinity { .. }))
            || self.is_shunned(membership)
        {
            2
        } else {
            0
        }
    }

    /// Whether pods of the batch or running ones may keep it out of a domain: it takes turns with them by size.
    fn is_shunned(&self, membership: &Membership) -> bool {
        membership.selected.iter().any(|id| {
            let group = self.topology.group(*id);
            group.key != HOSTNAME_KEY && group.rule == Rule::AntiAffinity { is_required: true }
        })
    }

    fn assign(&mut self, pending: &Pending) -> (Vec<Batch>, Option<Pending>) {
        let mut batches = Vec::new();
        let mut left = Some(pending.clone());
        for base in self.bases(pending) {
            let Some(pending) = left else { break };
            let (made, rest) = self.assign_within(base, &pending);
            batches.extend(made);
            left = rest;
        }
        (batches, left)
    }

    fn assign_within(&mut self, base: SetId, pending: &Pending) -> (Vec<Batch>, Option<Pending>) {
        let membership = self.view_of(pending.group, pending.view).membership.clone();
        let keys = self.topology.keys_of(&membership);
        let mut stakes: Vec<Stakes> = keys
            .iter()
            .map(|key| self.stakes(pending, &membership, (base, *key)))
            .collect();
        // Others' terms over a label that none of its nodes has say nothing about a pod.
        stakes.retain(|s| !s.feasible.is_empty() || self.topology.owns(&membership, s.key));
        let uncounted = self.uncounted(base, &membership);
        let mut shares: BTreeMap<Vec<(KeyId, DomainId)>, Vec<usize>> = BTreeMap::new();
        let mut members = pending.members.iter();
        let mut rest = Vec::new();
        for member in members.by_ref() {
            let pins: Option<Vec<(KeyId, DomainId)>> = stakes
                .iter()
                .map(|stakes| Some((stakes.key, self.best_domain(stakes)?)))
                .collect();
            let Some(pins) = pins else {
                rest.push(*member);
                break;
            };
            for pin in &pins {
                self.topology
                    .record_domain(&membership, *pin, &uncounted, 1);
                if let Some(left) = self.budget.get_mut(&(pending.group, pin.0, pin.1)) {
                    *left = left.saturating_sub(1);
                }
            }
            shares.entry(pins).or_default().push(*member);
        }
        rest.extend(members);
        let mut batches = Vec::new();
        for (pins, members) in shares {
            let pinned = self.pinned(base, &pins);
            let batch = Batch {
                group: pending.group,
                view: pending.view,
                set: pinned.unwrap_or(base),
                pins,
                members,
            };
            if pinned.is_some() {
                batches.push(batch);
            } else {
                self.unassign(&batch, batch.members.len());
                rest.extend(batch.members);
            }
        }
        let rest = (!rest.is_empty()).then_some(Pending {
            members: rest,
            ..*pending
        });
        (batches, rest)
    }

    fn pinned(&mut self, base: SetId, pins: &[(KeyId, DomainId)]) -> Option<SetId> {
        let mut set = base;
        for (key, domain) in pins {
            let name = &self.topology.keys()[*key];
            let value = &self.topology.domains(*key)[*domain];
            set = self
                .vocabulary
                .with(set, super::views::exactly(name, value))?;
        }
        Some(set)
    }

    /// Takes back the counts of pods that found no claim after all.
    pub(super) fn unassign(&mut self, batch: &Batch, pods: usize) {
        let membership = self.view_of(batch.group, batch.view).membership.clone();
        let uncounted = self.uncounted(batch.set, &membership);
        let pods = i64::try_from(pods).unwrap_or(0);
        for pin in &batch.pins {
            self.topology
                .record_domain(&membership, *pin, &uncounted, -pods);
        }
    }

    /// Spreads that would not count a node with these requirements.
    pub(super) fn uncounted(&mut self, set: SetId, membership: &Membership) -> Vec<GroupId> {
        let is_outside = |id: &GroupId| {
            let filter = &self.topology.group(*id).filter.requirements;
            !filter.is_empty()
                && !filter
                    .iter()
                    .any(|f| self.vocabulary.merge(set, *f).is_some())
        };
        membership
            .selected
            .iter()
            .copied()
            .filter(is_outside)
            .collect()
    }

    fn stakes(
        &mut self,
        pending: &Pending,
        membership: &Membership,
        (base, key): (SetId, KeyId),
    ) -> Stakes {
        let strict = self.view_of(pending.group, pending.view).strict;
        let owned = membership.owned.iter();
        let of_key = |id: &GroupId| self.topology.group(*id).key == key;
        let owned = owned
            .filter(|o| of_key(&o.group))
            .map(|o| (o.clone(), self.allowed_domains(strict, o.group)))
            .collect();
        let selecting = membership.selected.iter().copied().filter(of_key).collect();
        Stakes {
            group: pending.group,
            key,
            owned,
            selecting,
            feasible: self.feasible(base, key, pending),
        }
    }

    fn feasible(&mut self, base: SetId, key: KeyId, pending: &Pending) -> Feasible {
        let group = pending.group;
        let tolerations = &self.view_of(group, pending.view).tolerations;
        let tolerated: Vec<bool> = self
            .pools
            .iter()
            .map(|table| taints::untolerated(&table.taints, tolerations).is_none())
            .collect();
        let asked = (base, key, self.groups[group].requests.clone(), tolerated);
        if let Some(known) = self.feasible.get(&asked) {
            return Arc::clone(known);
        }
        let name = self.topology.keys()[key].clone();
        let mut best: BTreeMap<DomainId, f64> = BTreeMap::new();
        for pool in 0..self.pools.len() {
            if !asked.3[pool] || self.pools[pool].admits(base, &self.vocabulary).is_err() {
                continue;
            }
            let table = &mut self.pools[pool];
            let mut rows = table.rows_of(base, &self.vocabulary).as_ref().clone();
            table.retain_fitting(&mut rows, &self.groups[group].requests);
            if rows.is_empty() {
                continue;
            }
            let required = self.vocabulary.get(base).get(&name);
            for (value, of_domain) in table.domains(&name, &self.vocabulary) {
                if !required.has(&value) || !rows.intersects(&of_domain) {
                    continue;
                }
                let Some(domain) = self.topology.domain(key, &value) else {
                    continue;
                };
                // A lighter pool only matters where a heavier one has nothing.
                if best.contains_key(&domain) {
                    continue;
                }
                let pin = super::views::exactly(&name, &value);
                let price = match self.vocabulary.with(base, pin) {
                    Some(set) => self.unit_price(pool, set).of(&self.groups[group].requests),
                    None => f64::MAX,
                };
                best.insert(domain, price);
            }
        }
        let feasible: Feasible = best.into_iter().collect();
        self.feasible.insert(asked, Arc::clone(&feasible));
        feasible
    }

    /// The domain with the fewest pods among those that every stake admits; ties go to the cheaper one.
    fn best_domain(&self, stakes: &Stakes) -> Option<DomainId> {
        let Stakes {
            owned, selecting, ..
        } = stakes;
        let is_open = |domain: DomainId| {
            self.budget.get(&(stakes.group, stakes.key, domain)) != Some(&0)
                && owned
                    .iter()
                    .all(|(o, allowed)| self.topology.admits(o, domain, allowed))
                && !selecting
                    .iter()
                    .any(|id| self.topology.is_kept_out(*id, domain))
        };
        let crowd = |domain: DomainId| -> (i64, i64) {
            let count = |id: GroupId| match self.topology.group(id).rule {
                Rule::Spread { .. } => self.topology.group(id).selected[domain],
                Rule::Affinity | Rule::AntiAffinity { .. } => 0,
            };
            let own: i64 = owned.iter().map(|(o, _)| count(o.group)).sum();
            (own, selecting.iter().map(|id| count(*id)).sum())
        };
        stakes
            .feasible
            .iter()
            .filter(|(domain, _)| is_open(*domain))
            .min_by(|(a, price_a), (b, price_b)| {
                crowd(*a)
                    .cmp(&crowd(*b))
                    .then_with(|| price_a.total_cmp(price_b))
                    .then(a.cmp(b))
            })
            .map(|(domain, _)| *domain)
    }

    /// The domains of a group's key that strict requirements (and taints, if the group honours them) allow.
    pub(super) fn allowed_domains(&self, strict: SetId, id: GroupId) -> Arc<[bool]> {
        let group = self.topology.group(id);
        let name = &self.topology.keys()[group.key];
        let requirement = self.vocabulary.get(strict).find(name);
        let is_allowed = |value: &String| {
            requirement.is_none_or(|r| r.operator() != Operator::DoesNotExist && r.has(value))
        };
        let mut allowed: Vec<bool> = self
            .topology
            .domains(group.key)
            .iter()
            .map(is_allowed)
            .collect();
        if let Some(reachable) = self.reachable.get(&id) {
            for (allowed, reachable) in allowed.iter_mut().zip(reachable) {
                *allowed &= reachable;
            }
        }
        Arc::from(allowed)
    }
}
