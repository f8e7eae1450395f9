//! Which zone (or other domain) each pod goes to, assigned before any node is opened.
//!
//! Opening nodes one by one would let a spread take only `maxSkew` pods of a service on each; deciding the shares
//! first lets every node be filled with all of them. Answers to `getNextDomain` of Karpenter's `topologygroup.go`.

mod key_terms;

use std::collections::BTreeMap;

use crate::solve::input::pod_groups::{PodGroupId, shares_one_host};
use crate::solve::input::pool_table::{PoolId, PoolTable};
use crate::solve::input::topology::{HOSTNAME_KEY, Membership, Pin, TopologyGroupId, TopologyRule};
use crate::solve::input::views::exactly;
use crate::solve::input::vocabulary::SetId;
use crate::solve::solver::{DomainCaps, Pending, PodBatch, Solver};

use key_terms::KeyTerms;

impl Solver<'_> {
    /// Splits pending pods into batches of assigned domains, none of which is given more than its cap; returns those
    /// for which no domain is left.
    pub(crate) fn assign_domains(
        &mut self,
        pending: Vec<Pending>,
        caps: &DomainCaps,
    ) -> (Vec<PodBatch>, Vec<Pending>) {
        self.domain_caps.clone_from(caps);
        self.forget_feasible();
        let mut batches = Vec::new();
        let mut left = Vec::new();
        let mut constrained = Vec::new();
        for pending in pending {
            let membership = &self.view_of(pending.view).membership;
            if self.topology.keys_of(membership).is_empty() {
                let Some(set) = self.bases(&pending).first().copied() else {
                    left.push(pending);
                    continue;
                };
                batches.push(PodBatch {
                    view: pending.view,
                    set,
                    pins: Vec::new(),
                    members: pending.members,
                });
            } else {
                constrained.push(pending);
            }
        }
        // Those whom others look at go first, then affinity, then spreads that must end up level.
        constrained.sort_by_key(|p| self.constraint_rank(p));
        let mut is_retry = false;
        while !constrained.is_empty() {
            let mut failed = Vec::new();
            let mut has_moved = false;
            for pending in constrained {
                let (made, rest) = self.assign(&pending);
                has_moved |= !made.is_empty();
                batches.extend(made);
                failed.extend(rest);
            }
            constrained = Vec::new();
            if has_moved && !is_retry {
                is_retry = true;
                constrained = failed;
            } else {
                left.extend(failed);
            }
        }
        (batches, left)
    }

    /// What limits and reservations leave changes with every node.
    fn forget_feasible(&mut self) {
        let is_scarce = |pool: &PoolTable| pool.do_limits_bind || !pool.slots.is_empty();
        if self.pools.iter().any(is_scarce) {
            self.feasible_domains.clear();
        }
    }

    /// The view's requirements with each volume alternative that agrees with them, those first-hand that some pool can
    /// serve. None when every alternative contradicts the pod.
    fn bases(&mut self, pending: &Pending) -> Vec<SetId> {
        let view = self.view_of(pending.view).set;
        let bases = self.with_alternatives(pending.view.group, view);
        if bases.len() < 2 {
            return bases;
        }
        let of_view = pending.view;
        let is_served = |set: &SetId| {
            PoolId::all(self.pools.len())
                .any(|pool| self.rows_to_buy(pool, of_view, *set).is_some())
        };
        let served: Vec<SetId> = bases.iter().copied().filter(is_served).collect();
        if served.is_empty() { bases } else { served }
    }

    /// The requirements with each alternative of the group that agrees with them; as they are where there is none.
    pub(super) fn with_alternatives(&mut self, group: PodGroupId, set: SetId) -> Vec<SetId> {
        let alternatives = self.groups[group].alternatives.clone();
        if alternatives.is_empty() {
            return vec![set];
        }
        let merged = alternatives.into_iter();
        merged
            .filter_map(|it| self.vocabulary.merge(set, it))
            .collect()
    }

    fn constraint_rank(&self, pending: &Pending) -> u8 {
        let membership = &self.view_of(pending.view).membership;
        let owns = |wanted: fn(&TopologyRule) -> bool| {
            membership.owned.iter().any(|o| {
                let group = self.topology.group(o.group);
                group.key != HOSTNAME_KEY && wanted(&group.rule)
            })
        };
        if self.follows_to_host(membership) {
            3
        } else if owns(|rule| matches!(rule, TopologyRule::Affinity)) {
            1
        } else if shares_one_host(&self.topology, membership) {
            // The first of them opens the host that all others must find, so they come before any that look for them.
            0
        } else if owns(|rule| {
            matches!(
                rule,
                TopologyRule::Spread { .. } | TopologyRule::AntiAffinity { .. }
            )
        }) || self.is_shunned(membership)
        {
            2
        } else {
            0
        }
    }

    /// Whether pods must find a host on which those that they look for are known, so that no domain is theirs to open.
    fn follows_to_host(&self, membership: &Membership) -> bool {
        membership.owned.iter().any(|owned| {
            let group = self.topology.group(owned.group);
            let is_of_host = group.key == HOSTNAME_KEY && group.rule == TopologyRule::Affinity;
            is_of_host && (group.total > 0 || !owned.is_self_selecting)
        })
    }

    /// Whether pods of the batch or running ones may keep it out of a domain: it takes turns with them by size.
    fn is_shunned(&self, membership: &Membership) -> bool {
        membership.selected.iter().any(|id| {
            let group = self.topology.group(*id);
            group.key != HOSTNAME_KEY
                && group.rule == TopologyRule::AntiAffinity { is_required: true }
        })
    }

    fn assign(&mut self, pending: &Pending) -> (Vec<PodBatch>, Option<Pending>) {
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

    fn assign_within(
        &mut self,
        base: SetId,
        pending: &Pending,
    ) -> (Vec<PodBatch>, Option<Pending>) {
        let membership = self.view_of(pending.view).membership.clone();
        let keys = self.topology.keys_of(&membership);
        let terms: Vec<KeyTerms> = keys
            .iter()
            .map(|key| self.terms(pending, &membership, *key))
            .collect();
        let are_together = shares_one_host(&self.topology, &membership);
        let uncounted = self.uncounted(base, &membership);
        let mut shares: BTreeMap<Vec<Pin>, Vec<usize>> = BTreeMap::new();
        let mut members = pending.members.iter();
        let mut rest = Vec::new();
        for member in members.by_ref() {
            let of_first = shares.keys().next().filter(|_| are_together);
            let pins = match of_first {
                Some(pins) => self.are_open(&terms, pins).then(|| pins.clone()),
                None => self.pins(pending, &terms, base),
            };
            let Some(pins) = pins else {
                rest.push(*member);
                break;
            };
            for pin in &pins {
                self.topology
                    .record_domain(&membership, *pin, &uncounted, 1);
                if let Some(left) =
                    self.domain_caps
                        .get_mut(&(pending.view.group, pin.key, pin.domain))
                {
                    *left = left.saturating_sub(1);
                }
            }
            shares.entry(pins).or_default().push(*member);
        }
        rest.extend(members);
        let mut batches = Vec::new();
        for (pins, members) in shares {
            let pinned = self.pinned(base, &pins);
            let batch = PodBatch {
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
            view: pending.view,
            members: rest,
        });
        (batches, rest)
    }

    pub(crate) fn pinned(&mut self, base: SetId, pins: &[Pin]) -> Option<SetId> {
        let mut set = base;
        for pin in pins {
            let name = self.topology.label(pin.key);
            let value = self.topology.value(*pin);
            set = self.vocabulary.with(set, exactly(name, value))?;
        }
        Some(set)
    }

    /// Takes back the counts of pods that found no claim after all.
    pub(crate) fn unassign(&mut self, batch: &PodBatch, pods: usize) {
        let membership = self.view_of(batch.view).membership.clone();
        let uncounted = self.uncounted(batch.set, &membership);
        let pods = i64::try_from(pods).unwrap_or(0);
        for pin in &batch.pins {
            self.topology
                .record_domain(&membership, *pin, &uncounted, -pods);
        }
    }

    /// Spreads that would not count a node with these requirements.
    pub(crate) fn uncounted(
        &mut self,
        set: SetId,
        membership: &Membership,
    ) -> Vec<TopologyGroupId> {
        let is_outside = |id: &TopologyGroupId| {
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
}
