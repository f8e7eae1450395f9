//! Which domains of its keys the terms of a pod, and those that count it, leave open.
//!
//! Assigns nothing.

use std::sync::Arc;

use crate::requirements::Operator;
use crate::solve::input::pod_groups::PodGroupId;
use crate::solve::input::topology::{
    DomainId, KeyId, Membership, OwnedTerm, Pin, TopologyGroupId, TopologyRule,
};
use crate::solve::input::vocabulary::SetId;
use crate::solve::solver::{FeasibleDomains, Pending, Solver};

/// What decides the domain of one key for the pods of a group.
pub(super) struct KeyTerms {
    pub(super) group: PodGroupId,
    pub(super) key: KeyId,
    /// Whether the pods declare a term over the key, rather than only being looked at.
    pub(super) is_owner: bool,
    /// Terms of the pods themselves, with the domains that strict requirements allow.
    pub(super) owned: Vec<(OwnedTerm, Arc<[bool]>)>,
    /// Groups that count the pods.
    pub(super) selecting: Vec<TopologyGroupId>,
}

impl Solver<'_> {
    pub(super) fn terms(&self, pending: &Pending, membership: &Membership, key: KeyId) -> KeyTerms {
        let strict = self.view_of(pending.view).strict;
        let of_key = |id: &TopologyGroupId| self.topology.group(*id).key == key;
        let owned = membership.owned.iter().filter(|o| of_key(&o.group));
        let selecting = membership.selected.iter().copied().filter(of_key);
        KeyTerms {
            group: pending.view.group,
            key,
            is_owner: self.topology.owns(membership, key),
            owned: owned
                .map(|o| (o.clone(), self.allowed_domains(strict, o.group)))
                .collect(),
            selecting: selecting.collect(),
        }
    }

    /// A domain for each key, such that some node has them all.
    pub(super) fn pins(
        &mut self,
        pending: &Pending,
        terms: &[KeyTerms],
        base: SetId,
    ) -> Option<Vec<Pin>> {
        let Some((first, others)) = terms.split_first() else {
            return Some(Vec::new());
        };
        let feasible = self.feasible(base, first.key, pending);
        // Others' terms over a label that none of its nodes has say nothing about a pod.
        if feasible.is_empty() && !first.is_owner {
            return self.pins(pending, others, base);
        }
        self.open_domains(first, &feasible)
            .into_iter()
            .find_map(|domain| {
                let mut pins = vec![Pin {
                    key: first.key,
                    domain,
                }];
                if !others.is_empty() {
                    let set = self.pinned(base, &pins)?;
                    pins.extend(self.pins(pending, others, set)?);
                }
                Some(pins)
            })
    }

    /// Whether the terms admit one more pod where others of its group went.
    pub(super) fn are_open(&self, terms: &[KeyTerms], pins: &[Pin]) -> bool {
        pins.iter().all(|Pin { key, domain }| {
            let mut of_key = terms.iter().filter(|it| it.key == *key);
            of_key.all(|it| self.is_open(it, *domain))
        })
    }

    fn is_open(&self, terms: &KeyTerms, domain: DomainId) -> bool {
        let mut owned = terms.owned.iter();
        let mut selecting = terms.selecting.iter();
        self.domain_caps.get(&(terms.group, terms.key, domain)) != Some(&0)
            && owned.all(|(it, allowed)| self.topology.admits(it, domain, allowed))
            && !selecting.any(|id| self.topology.is_kept_out(*id, domain))
    }

    /// The domains that every term admits, those with the fewest pods first; of equal ones the cheaper.
    fn open_domains(&self, terms: &KeyTerms, feasible: &FeasibleDomains) -> Vec<DomainId> {
        let count = |id: TopologyGroupId, domain: DomainId| match self.topology.group(id).rule {
            TopologyRule::Spread { .. } => self.topology.group(id).selected_in(domain),
            TopologyRule::Affinity | TopologyRule::AntiAffinity { .. } => 0,
        };
        let crowd = |domain: DomainId| -> (i64, i64) {
            let owned = terms.owned.iter().map(|(it, _)| count(it.group, domain));
            let selecting = terms.selecting.iter().map(|id| count(*id, domain));
            (owned.sum(), selecting.sum())
        };
        let open = feasible.iter().filter(|(it, _)| self.is_open(terms, *it));
        let mut open: Vec<_> = open
            .map(|(domain, price)| (crowd(*domain), *price, *domain))
            .collect();
        open.sort_by(|a, b| {
            let by_price = || a.1.total_cmp(&b.1);
            a.0.cmp(&b.0).then_with(by_price).then(a.2.cmp(&b.2))
        });
        open.into_iter().map(|(.., domain)| domain).collect()
    }

    /// The domains of a group's key that strict requirements (and taints, if the group honours them) allow.
    pub(crate) fn allowed_domains(&self, strict: SetId, id: TopologyGroupId) -> Arc<[bool]> {
        let group = self.topology.group(id);
        let name = self.topology.label(group.key);
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
