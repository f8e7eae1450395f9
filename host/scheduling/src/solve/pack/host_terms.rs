//! What a pod's terms over host names say of a node that is only planned.
//!
//! Topology itself counts on nodes that are opened; here a node is filled without anything being recorded.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::solve::input::topology::{
    HOSTNAME_KEY, Membership, Topology, TopologyGroupId, TopologyRule,
};

/// A term over host names that an item's pods declare or are counted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostTerm {
    pub(super) group: TopologyGroupId,
    pub(super) kind: HostTermKind,
    pub(super) is_counted: bool,
    pub(super) is_owner: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HostTermKind {
    Spread(i64),
    AntiAffinity {
        keeps_out: bool,
    },
    /// Whether a pod that it looks for exists nowhere yet.
    Affinity {
        may_open: bool,
    },
}

/// The terms over host names that a pod declares or is counted by.
pub(super) fn host_terms(topology: &Topology, membership: &Membership) -> SmallVec<[HostTerm; 2]> {
    let owned: BTreeMap<TopologyGroupId, bool> = membership
        .owned
        .iter()
        .map(|o| (o.group, o.is_self_selecting))
        .collect();
    let all: BTreeSet<TopologyGroupId> = owned
        .keys()
        .copied()
        .chain(membership.selected.iter().copied())
        .collect();
    all.into_iter()
        .filter(|id| topology.group(*id).key == HOSTNAME_KEY)
        .map(|id| {
            let group = topology.group(id);
            let is_self_selecting = owned.get(&id).copied().unwrap_or(false);
            let kind = match group.rule {
                TopologyRule::Spread { max_skew } => HostTermKind::Spread(max_skew),
                TopologyRule::AntiAffinity { is_required } => HostTermKind::AntiAffinity {
                    keeps_out: is_required,
                },
                TopologyRule::Affinity => HostTermKind::Affinity {
                    may_open: is_self_selecting && group.total == 0,
                },
            };
            HostTerm {
                group: id,
                kind,
                is_counted: membership.selected.contains(&id),
                is_owner: owned.contains_key(&id),
            }
        })
        .collect()
}
