//! The state of a solve, which every phase reads and changes.
//!
//! Holds no rule: what is done with it is told by the phases, each in files of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::input::counts::TermCounts;
use super::input::nodes::Nodes;
use super::input::pod_groups::{GroupView, PodGroup, PodGroupId};
use super::input::pool_table::{PoolId, PoolTable};
use super::input::topology::{DomainId, KeyId, Pin, Topology, TopologyGroupId};
use super::input::unit_price::{UnitPrice, Usable, unit_price};
use super::input::vocabulary::{Amounts, Dimensions, SetId, Vocabulary};
use super::place::claim::OpenClaim;
use crate::device::Allocator;
use crate::error::PodError;
use crate::problem::Problem;

/// What decides which domains have rows for a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FeasibleKey {
    pub(super) requirements: SetId,
    pub(super) key: KeyId,
    pub(super) requests: Amounts,
    /// For each pool, whether its taints are tolerated.
    pub(super) tolerated: Vec<bool>,
    /// The group, where its host ports or volumes matter.
    pub(super) of_extras: Option<PodGroupId>,
}

/// Domains that have rows for a pod, with a price to break ties.
pub(super) type FeasibleDomains = Arc<[(DomainId, f64)]>;

/// How many more pods of a group a domain may be given; domains that are not listed take any number.
pub(super) type DomainCaps = BTreeMap<(PodGroupId, KeyId, DomainId), usize>;

/// Domains that pods of a group keep out of.
pub(super) type ClosedDomains = BTreeSet<(PodGroupId, KeyId, DomainId)>;

/// Domains that pods of a group keep out of until a slot there is free or known to be gone, and whose slot that is: the
/// pool's.
pub(super) type DeferredDomains = BTreeMap<(PodGroupId, KeyId, DomainId), String>;

/// A step of relaxation of a group's pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewId {
    pub(super) group: PodGroupId,
    /// Position among the views of the group; 0 is the strictest.
    pub(super) step: usize,
}

/// Pods of a group that still need a place, at one step of relaxation.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) view: ViewId,
    pub(super) members: Vec<usize>,
}

/// Pods of a group with their domains assigned, ready for a claim.
#[derive(Debug, Clone)]
pub(super) struct PodBatch {
    pub(super) view: ViewId,
    /// Requirements, volume alternative and pins merged.
    pub(super) set: SetId,
    pub(super) pins: Vec<Pin>,
    pub(super) members: Vec<usize>,
}

/// The state of a solve.
pub(super) struct Solver<'a> {
    pub(super) problem: &'a Problem,
    pub(super) vocabulary: Vocabulary,
    pub(super) dims: Dimensions,
    pub(super) topology: Topology,
    /// By weight, then name, both descending.
    pub(super) pools: Vec<PoolTable>,
    pub(super) groups: Vec<PodGroup>,
    pub(super) nodes: Nodes<'a>,
    /// Running pods of each topology group.
    pub(super) term_counts: Vec<Arc<TermCounts>>,
    /// Gives devices to pods that claim any.
    pub(super) devices: Option<Allocator<'a>>,
    pub(super) claims: Vec<OpenClaim>,
    pub(super) placed: usize,
    /// For spreads that honour taints, the domains that their pods can reach.
    pub(super) reachable: BTreeMap<TopologyGroupId, Vec<bool>>,
    /// What the pods of the problem can use of a node.
    pub(super) usable: Usable,
    /// Unit prices by pool and requirement set.
    pub(super) unit_prices: BTreeMap<(PoolId, SetId), UnitPrice>,
    /// What domains may still be given in this round.
    pub(super) domain_caps: DomainCaps,
    /// Domains with rows, by what decides about them.
    pub(super) feasible_domains: BTreeMap<FeasibleKey, FeasibleDomains>,
    pub(super) refused: BTreeMap<usize, PodError>,
    pub(super) deferred: DeferredDomains,
    /// Domains in which no node could be had.
    pub(super) closed_domains: ClosedDomains,
    /// Domains in which no node could be had in the present pass, in which others may still open one there.
    pub(super) failed_domains: ClosedDomains,
}

impl ViewId {
    /// Of the strictest view of a group.
    pub(super) fn strictest(group: PodGroupId) -> Self {
        Self { group, step: 0 }
    }
}

impl Solver<'_> {
    pub(super) fn view_of(&self, ViewId { group, step }: ViewId) -> &GroupView {
        &self.groups[group].views[step]
    }

    /// The unit price of a requirement set in a pool, for the mix of all pods of the problem.
    pub(super) fn unit_price(&mut self, pool: PoolId, set: SetId) -> UnitPrice {
        if let Some(known) = self.unit_prices.get(&(pool, set)) {
            return *known;
        }
        let rows = self.pools[pool].rows_of(set, &self.vocabulary);
        let usable = &self.usable;
        let price = unit_price(&self.pools[pool], &rows, &usable.demand, usable);
        self.unit_prices.insert((pool, set), price);
        price
    }
}
