//! The pods of each topology group, counted by domain and by host, and what the counts allow.
//!
//! Once running pods are counted, counts change only through [`Topology::record_host`] and
//! [`Topology::record_domain`]. Answers to `Get` and `Record` of Karpenter's `scheduling/topologygroup.go`.

use smallvec::SmallVec;

use super::{
    DomainId, HOSTNAME_KEY, KeyId, Membership, OwnedTerm, Pin, Topology, TopologyGroup,
    TopologyGroupId, TopologyRule,
};

/// Pods of a topology group in one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupCounts {
    /// Those that the term selects.
    pub(crate) selected: i64,
    /// Those that declare it.
    pub(crate) owners: i64,
}

/// Where a node is in the topology, and whom it hosts.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodePlace {
    /// Domain of each key, where assigned.
    pub(in crate::solve::input) domains: Vec<Option<DomainId>>,
    /// Keys that terms of pods here look at though no domain is known: none may be assigned later, which would leave
    /// those pods uncounted.
    pub(crate) unknown: SmallVec<[KeyId; 2]>,
    /// Per group with the host name as key: selected pods and owners on this node.
    pub(crate) hosted: SmallVec<[(TopologyGroupId, GroupCounts); 4]>,
    /// Spreads whose filter leaves this node out.
    pub(crate) uncounted: Vec<TopologyGroupId>,
}

/// What a list of groups says of one.
pub(crate) fn counts_of(
    hosted: &[(TopologyGroupId, GroupCounts)],
    group: TopologyGroupId,
) -> GroupCounts {
    let known = hosted.iter().find(|(id, _)| *id == group);
    known.map_or_else(GroupCounts::default, |(_, counts)| *counts)
}

impl NodePlace {
    /// The domain of a key, where assigned.
    pub(crate) fn domain(&self, key: KeyId) -> Option<DomainId> {
        self.domains.get(key.0).copied().flatten()
    }

    /// Assigns a domain.
    pub(crate) fn assign(&mut self, Pin { key, domain }: Pin) {
        if self.domains.len() <= key.0 {
            self.domains.resize(key.0 + 1, None);
        }
        self.domains[key.0] = Some(domain);
    }

    /// All that are assigned, by key.
    pub(crate) fn pins(&self) -> impl Iterator<Item = Pin> {
        let domains = self.domains.iter().enumerate();
        domains.filter_map(|(key, domain)| {
            let (key, domain) = (KeyId(key), (*domain)?);
            Some(Pin { key, domain })
        })
    }

    pub(crate) fn hosted(&self, group: TopologyGroupId) -> GroupCounts {
        counts_of(&self.hosted, group)
    }

    pub(crate) fn host(&mut self, group: TopologyGroupId, more: GroupCounts) {
        if let Some((_, counts)) = self.hosted.iter_mut().find(|(id, _)| *id == group) {
            counts.selected += more.selected;
            counts.owners += more.owners;
        } else {
            self.hosted.push((group, more));
        }
    }
}

impl Topology {
    /// Counts running pods in a domain of a group, or takes them off with negative numbers.
    pub(in crate::solve::input) fn count_domain(
        &mut self,
        id: TopologyGroupId,
        domain: DomainId,
        counts: GroupCounts,
    ) {
        let group = &mut self.groups[id.0];
        group.selected[domain.0] += counts.selected;
        group.owners[domain.0] += counts.owners;
        group.total += counts.selected;
    }

    /// Counts running pods of a group whose domains are hosts.
    pub(in crate::solve::input) fn count_hosts(&mut self, id: TopologyGroupId, selected: i64) {
        self.groups[id.0].total += selected;
    }

    /// The domains in which one more pod with this term may go, as the group alone sees it. `allowed` are the
    /// domains of the pod's strict requirements.
    pub(crate) fn admits(&self, owned: &OwnedTerm, domain: DomainId, allowed: &[bool]) -> bool {
        let group = &self.groups[owned.group.0];
        let count = group.selected[domain.0];
        match &group.rule {
            TopologyRule::Spread { max_skew } => {
                let own = i64::from(owned.is_self_selecting);
                count + own - self.least(owned, allowed) <= *max_skew
            }
            TopologyRule::Affinity => count > 0 || self.may_bootstrap(owned, allowed),
            TopologyRule::AntiAffinity { .. } => count == 0,
        }
    }

    /// Whether a self-selecting affinity may open its first domain.
    fn may_bootstrap(&self, owned: &OwnedTerm, allowed: &[bool]) -> bool {
        let group = &self.groups[owned.group.0];
        owned.is_self_selecting
            && !group
                .selected
                .iter()
                .zip(allowed)
                .any(|(count, ok)| *ok && *count > 0)
    }

    /// The emptiest allowed domain's count.
    pub(crate) fn least(&self, owned: &OwnedTerm, allowed: &[bool]) -> i64 {
        let group = &self.groups[owned.group.0];
        let counts = || {
            group
                .selected
                .iter()
                .zip(allowed)
                .filter(|(_, ok)| **ok)
                .map(|(c, _)| *c)
        };
        let too_few = owned
            .min_domains
            .is_some_and(|min| (counts().count() as i64) < min);
        if too_few {
            0
        } else {
            counts().min().unwrap_or(0)
        }
    }

    /// Whether owners of a required anti-affinity term keep the pod out of a domain.
    pub(crate) fn is_kept_out(&self, selected: TopologyGroupId, domain: DomainId) -> bool {
        let group = &self.groups[selected.0];
        group.rule == TopologyRule::AntiAffinity { is_required: true } && group.owners[domain.0] > 0
    }

    /// How many pods with these terms may join a node at once, as far as the host name goes.
    pub(crate) fn host_pods_max(&self, membership: &Membership, place: &NodePlace) -> usize {
        let mut pods_max = i64::MAX;
        for owned in &membership.owned {
            let group = &self.groups[owned.group.0];
            if group.key != HOSTNAME_KEY {
                continue;
            }
            let GroupCounts { selected, owners } = place.hosted(owned.group);
            pods_max = pods_max.min(owner_pods_max(group, owned, selected));
            if owned.is_self_selecting {
                pods_max = pods_max.min(guest_pods_max(group, selected, owners));
            }
        }
        for id in &membership.selected {
            let group = &self.groups[id.0];
            if group.key != HOSTNAME_KEY || membership.owned.iter().any(|o| o.group == *id) {
                continue;
            }
            let GroupCounts { selected, owners } = place.hosted(*id);
            pods_max = pods_max.min(guest_pods_max(group, selected, owners));
        }
        usize::try_from(pods_max.max(0)).unwrap_or(usize::MAX)
    }

    /// Counts pods on a node, or takes them off with a negative number.
    pub(crate) fn record_host(
        &mut self,
        membership: &Membership,
        place: &mut NodePlace,
        pods: i64,
    ) {
        for id in &membership.selected {
            if self.groups[id.0].key == HOSTNAME_KEY && !place.uncounted.contains(id) {
                let counts = GroupCounts {
                    selected: pods,
                    owners: 0,
                };
                place.host(*id, counts);
                self.groups[id.0].total += pods;
            }
        }
        for owned in &membership.owned {
            if self.groups[owned.group.0].key == HOSTNAME_KEY {
                let counts = GroupCounts {
                    selected: 0,
                    owners: pods,
                };
                place.host(owned.group, counts);
            }
        }
    }

    /// Counts pods in a domain of a key, or takes them off with a negative number. `uncounted` are the spreads whose
    /// filter leaves the node out.
    pub(crate) fn record_domain(
        &mut self,
        membership: &Membership,
        Pin { key, domain }: Pin,
        uncounted: &[TopologyGroupId],
        pods: i64,
    ) {
        for id in &membership.selected {
            let group = &mut self.groups[id.0];
            if group.key == key && !uncounted.contains(id) {
                group.selected[domain.0] += pods;
                group.total += pods;
            }
        }
        for owned in &membership.owned {
            let group = &mut self.groups[owned.group.0];
            if group.key == key {
                group.owners[domain.0] += pods;
            }
        }
    }
}

fn owner_pods_max(group: &TopologyGroup, owned: &OwnedTerm, selected: i64) -> i64 {
    match &group.rule {
        // A new node can always be made, so the emptiest host counts zero.
        TopologyRule::Spread { max_skew } if owned.is_self_selecting => max_skew - selected,
        TopologyRule::Spread { max_skew } if selected > *max_skew => 0,
        TopologyRule::AntiAffinity { .. } if selected > 0 => 0,
        TopologyRule::AntiAffinity { .. } if owned.is_self_selecting => 1,
        TopologyRule::Spread { .. } | TopologyRule::AntiAffinity { .. } => i64::MAX,
        TopologyRule::Affinity if selected > 0 || (owned.is_self_selecting && group.total == 0) => {
            i64::MAX
        }
        TopologyRule::Affinity => 0,
    }
}

/// How many pods may come that others' terms select. Kubernetes does not guard a spread against later guests; we do, so
/// that the end state satisfies the owners too.
fn guest_pods_max(group: &TopologyGroup, selected: i64, owners: i64) -> i64 {
    match &group.rule {
        TopologyRule::Spread { max_skew } if owners > 0 => max_skew - selected,
        TopologyRule::AntiAffinity { is_required: true } if owners > 0 => 0,
        TopologyRule::Spread { .. }
        | TopologyRule::AntiAffinity { .. }
        | TopologyRule::Affinity => i64::MAX,
    }
}
